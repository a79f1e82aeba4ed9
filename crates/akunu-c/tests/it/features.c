/* The table of features in docs/library.md: a function for each row, called as the row, which is printed when it has passed.
 * features MODEL ADAPTER EMBEDDER RERANKER WHISPER RECORDING EMPTY_FOLDER [ROW…], all rows unless some are named */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <time.h>

#define QUESTION "What is the capital of France?"
#define BEGINNING "The capital of France is"

static akunu_model *model;
static const char *adapter, *embedder_folder, *reranker_folder, *whisper_folder, *recording, *empty_folder;

struct heard {
    size_t n_pieces;
    char text[512];
};

static int remember(const char *text, size_t length, void *context) {
    struct heard *heard = context;
    heard->n_pieces++;
    CHECK(strlen(text) == length && strlen(heard->text) + length < sizeof heard->text);
    strcat(heard->text, text);
    return 0;
}

/* The same every time. */
static akunu_options *fixed(void) {
    akunu_options *options = NULL;
    OK(akunu_options_new(&options));
    OK(akunu_options_set_number(options, "temperature", 0));
    OK(akunu_options_set_number(options, "context", 256));
    OK(akunu_options_set_number(options, "max_tokens", 24));
    return options;
}

/* A conversation with such options, which are freed. */
static akunu_chat *chat_with(akunu_options *options) {
    akunu_chat *chat = NULL;
    OK(akunu_chat_new(model, options, &chat));
    OK(akunu_options_free(options));
    return chat;
}

static akunu_stop ask(akunu_chat *chat, const char *question, struct heard *heard) {
    akunu_stop stop = AKUNU_STOP_OTHER;
    memset(heard, 0, sizeof *heard);
    OK(akunu_chat_ask(chat, question, remember, heard, &stop));
    return stop;
}

/* What a conversation with such options answers first. Frees the options. */
static akunu_stop answer_with(akunu_options *options, struct heard *heard) {
    akunu_chat *chat = chat_with(options);
    akunu_stop stop = ask(chat, QUESTION, heard);
    OK(akunu_chat_free(chat));
    return stop;
}

static akunu_stop answer_with_text(const char *name, const char *value, struct heard *heard) {
    akunu_options *options = fixed();
    OK(akunu_options_set_text(options, name, value));
    return answer_with(options, heard);
}

static void a_conversation(void) {
    akunu_chat *chat = chat_with(fixed());
    struct heard heard;
    CHECK(ask(chat, QUESTION, &heard) == AKUNU_STOP_END && strstr(heard.text, "Paris") && heard.n_pieces > 1);
    ask(chat, "And of Italy?", &heard);
    CHECK(strstr(heard.text, "Rome"));
    OK(akunu_chat_free(chat));
}

static void an_answer_to_messages(void) {
    akunu_chat *chat = chat_with(fixed());
    struct heard heard = {0, ""};
    OK(akunu_chat_say(chat, "user", QUESTION));
    OK(akunu_chat_say(chat, "assistant", "Paris."));
    OK(akunu_chat_say(chat, "user", "And of Italy?"));
    OK(akunu_chat_answer(chat, remember, &heard, NULL));
    CHECK(strstr(heard.text, "Rome"));
    OK(akunu_chat_free(chat));
}

static void another_answer(void) {
    akunu_chat *chat = chat_with(fixed());
    struct heard first, again = {0, ""};
    ask(chat, QUESTION, &first);
    OK(akunu_chat_regenerate(chat, remember, &again, NULL));
    CHECK(strcmp(first.text, again.text) == 0);
    OK(akunu_chat_free(chat));
}

static void saved_and_restored_without_reading_again(void) {
    akunu_chat *chat = chat_with(fixed()), *other = chat_with(fixed());
    struct heard first, again;
    char path[4096];
    FILE *session;
    ask(chat, QUESTION, &first);
    snprintf(path, sizeof path, "%s/talk.json", empty_folder);
    OK(akunu_chat_save(chat, path));
    ask(chat, "And of Italy?", &first);
    OK(akunu_chat_restore(other, path));
    ask(other, "And of Italy?", &again);
    CHECK(strstr(first.text, "Rome") && strcmp(first.text, again.text) == 0);
    /* What was computed lies in a file beside the messages. */
    strcat(path, ".session");
    session = fopen(path, "rb");
    CHECK(session != NULL && fclose(session) == 0);
    OK(akunu_chat_free(other));
    OK(akunu_chat_free(chat));
}

/* A queue between a thread that computes and a loop that has other things to do. */
struct queue {
    pthread_mutex_t lock;
    akunu_chat *chat;
    struct heard heard;
    size_t n_taken;
    int has_ended;
};

static int post(const char *text, size_t length, void *context) {
    struct queue *queue = context;
    pthread_mutex_lock(&queue->lock);
    remember(text, length, &queue->heard);
    pthread_mutex_unlock(&queue->lock);
    return 0;
}

static void *compute(void *context) {
    struct queue *queue = context;
    OK(akunu_chat_ask(queue->chat, QUESTION, post, queue, NULL));
    pthread_mutex_lock(&queue->lock);
    queue->has_ended = 1;
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static void a_stream_for_asynchronous_programs(void) {
    struct queue queue = {PTHREAD_MUTEX_INITIALIZER, chat_with(fixed()), {0, ""}, 0, 0};
    const struct timespec moment = {0, 1000000};
    pthread_t thread;
    int has_ended = 0;
    CHECK(pthread_create(&thread, NULL, compute, &queue) == 0);
    while (!has_ended) {
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&queue.lock);
        if (queue.heard.n_pieces > queue.n_taken) queue.n_taken = queue.heard.n_pieces;
        has_ended = queue.has_ended;
        pthread_mutex_unlock(&queue.lock);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(queue.n_taken > 1 && strstr(queue.heard.text, "Paris"));
    OK(akunu_chat_free(queue.chat));
}

static void *cancel(void *context) {
    OK(akunu_chat_cancel(context));
    return NULL;
}

static int cancel_from_elsewhere(const char *text, size_t length, void *context) {
    pthread_t thread;
    (void)text;
    (void)length;
    CHECK(pthread_create(&thread, NULL, cancel, context) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}

static void cancelling_from_another_thread(void) {
    akunu_chat *chat = chat_with(fixed());
    akunu_stop stop = AKUNU_STOP_OTHER;
    OK(akunu_chat_ask(chat, "Count from one to a hundred.", cancel_from_elsewhere, chat, &stop));
    CHECK(stop == AKUNU_STOP_CANCELLED);
    OK(akunu_chat_free(chat));
}

static void a_text_that_goes_on(void) {
    akunu_options *options = fixed();
    akunu_session *session = NULL;
    struct heard heard = {0, ""};
    uint32_t ids[32];
    size_t n_ids = 0;
    OK(akunu_session_new(model, options, &session));
    OK(akunu_tokenize(model, BEGINNING, true, ids, 32, &n_ids));
    OK(akunu_session_feed(session, ids, n_ids));
    OK(akunu_options_set_number(options, "max_tokens", 5));
    OK(akunu_session_generate(session, options, remember, &heard, NULL));
    CHECK(strstr(heard.text, "Paris"));
    OK(akunu_session_free(session));
    OK(akunu_options_free(options));
}

static void many_texts_together(void) {
    const char *texts[3] = {BEGINNING, "The capital of Italy is", "1, 2, 3,"};
    akunu_options *options = fixed();
    struct heard heard = {0, ""};
    OK(akunu_options_set_number(options, "max_tokens", 6));
    OK(akunu_generate_all(model, texts, 3, options, remember, &heard));
    CHECK(heard.n_pieces == 3 && strstr(heard.text, "Paris") && strstr(heard.text, "Rome"));
    OK(akunu_options_free(options));
}

static void length_of_the_context(void) {
    akunu_options *options = fixed();
    akunu_session *session = NULL;
    uint32_t ids[64] = {0};
    OK(akunu_options_set_number(options, "context", 16));
    OK(akunu_session_new(model, options, &session));
    CHECK(akunu_session_feed(session, ids, 64) == AKUNU_STATUS_CONTEXT_FULL);
    CHECK(strstr(akunu_last_error(), "16"));
    OK(akunu_session_free(session));
    OK(akunu_options_free(options));
}

static void maximum_length_of_an_answer(void) {
    akunu_options *options = fixed();
    struct heard heard;
    OK(akunu_options_set_number(options, "max_tokens", 2));
    CHECK(answer_with(options, &heard) == AKUNU_STOP_LENGTH && heard.n_pieces <= 2);
}

static void texts_that_end_an_answer(void) {
    struct heard heard;
    CHECK(answer_with_text("stop", "Paris", &heard) == AKUNU_STOP_STOP && !strstr(heard.text, "Paris"));
}

static void json_by_a_schema(void) {
    struct heard heard;
    CHECK(answer_with_text("json_schema", "{\"type\": \"boolean\"}", &heard) == AKUNU_STOP_GRAMMAR);
    CHECK(strcmp(heard.text, "true") == 0 || strcmp(heard.text, "false") == 0);
}

static void a_grammar_gbnf_or_lark(void) {
    const char *grammars[2] = {"root ::= \"Rome\" | \"Oslo\"", "start: \"Rome\" | \"Oslo\""};
    struct heard heard;
    for (int i = 0; i < 2; i++) {
        answer_with_text("grammar", grammars[i], &heard);
        CHECK(strcmp(heard.text, "Rome") == 0 || strcmp(heard.text, "Oslo") == 0);
    }
}

static void a_regular_expression(void) {
    struct heard heard;
    answer_with_text("regex", "[0-9]{3}-[0-9]{2}", &heard);
    CHECK(strlen(heard.text) == 6 && heard.text[3] == '-');
}

static void how_likely_tokens_were(void) {
    akunu_options *options = fixed();
    akunu_chat *chat;
    struct heard heard;
    float logprobs[64];
    size_t length = 0;
    OK(akunu_options_set_number(options, "logprobs", 0));
    chat = chat_with(options);
    ask(chat, QUESTION, &heard);
    CHECK(akunu_chat_logprobs(chat, logprobs, 1, &length) == AKUNU_STATUS_MEMORY);
    OK(akunu_chat_logprobs(chat, logprobs, 64, &length));
    CHECK(length > 3);
    for (size_t i = 0; i < length; i++) CHECK(logprobs[i] <= 0 && logprobs[i] > -10);
    OK(akunu_chat_free(chat));
}

/* The adapter makes answers nonsense. */
static void lora_adapters(void) {
    akunu_options *options = fixed();
    struct heard heard;
    answer_with_text("lora", adapter, &heard);
    CHECK(!strstr(heard.text, "Paris"));
    OK(akunu_options_set_text(options, "lora", adapter));
    OK(akunu_options_set_number(options, "lora_scale", 0));
    answer_with(options, &heard);
    CHECK(strstr(heard.text, "Paris"));
}

static void guesses_of_a_draft_model(void) {
    akunu_options *options = fixed();
    struct heard plain, guessed;
    answer_with(fixed(), &plain);
    OK(akunu_options_set_draft(options, model));
    answer_with(options, &guessed);
    CHECK(strcmp(plain.text, guessed.text) == 0);
}

static float dot(const float *a, const float *b, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void texts_as_vectors(void) {
    const char *texts[3] = {"a cat sleeps", "the kitten is napping", "stock markets fell"};
    float vectors[3][384];
    akunu_embedder *embedder = NULL;
    size_t length = 0;
    OK(akunu_embedder_open(embedder_folder, NULL, &embedder));
    OK(akunu_embed(embedder, texts, 3, vectors[0], 3 * 384, &length));
    CHECK(length == 3 * 384);
    CHECK(dot(vectors[0], vectors[1], 384) > dot(vectors[0], vectors[2], 384) + 0.2f);
    OK(akunu_embedder_free(embedder));
}

static void documents_by_a_question(void) {
    const char *documents[2] = {"an answer", "another"};
    float scores[2] = {0, 0};
    akunu_reranker *reranker = NULL;
    size_t length = 0;
    OK(akunu_reranker_open(reranker_folder, NULL, &reranker));
    CHECK(akunu_rank(reranker, "a question", documents, 2, scores, 1, &length) == AKUNU_STATUS_MEMORY);
    OK(akunu_rank(reranker, "a question", documents, 2, scores, 2, &length));
    CHECK(length == 2 && scores[0] == 1 && scores[1] == 1);
    documents[1] = "";
    CHECK(akunu_rank(reranker, "a question", documents, 2, scores, 2, &length) == AKUNU_STATUS_ARGUMENT);
    CHECK(strstr(akunu_last_error(), "text 2 is empty"));
    OK(akunu_reranker_free(reranker));
    CHECK(akunu_reranker_free(reranker) == AKUNU_STATUS_HANDLE);
}

static int hear(const akunu_segment *segment, void *context) {
    return remember(segment->text, strlen(segment->text), context);
}

static void speech_as_text(void) {
    akunu_transcriber *transcriber = NULL;
    struct heard heard = {0, ""};
    OK(akunu_transcriber_open(whisper_folder, NULL, &transcriber));
    OK(akunu_transcribe(transcriber, recording, NULL, hear, &heard));
    CHECK(strstr(heard.text, "ask what you can do for your country"));
    OK(akunu_transcriber_free(transcriber));
}

static void kinds_of_errors(void) {
    akunu_options *options = fixed();
    akunu_model *none = NULL;
    akunu_chat *chat = NULL;
    CHECK(akunu_model_open("nowhere.gguf", NULL, &none) == AKUNU_STATUS_NOT_FOUND);
    CHECK(akunu_model_open(recording, NULL, &none) == AKUNU_STATUS_UNSUPPORTED_MODEL);
    OK(akunu_options_set_number(options, "context", 0));
    CHECK(akunu_chat_new(model, options, &chat) == AKUNU_STATUS_ARGUMENT);
    OK(akunu_options_set_number(options, "context", 1 << 23));
    CHECK(akunu_chat_new(model, options, &chat) == AKUNU_STATUS_OUT_OF_MEMORY);
    OK(akunu_options_free(options));
}

#define FEATURE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} FEATURES[] = {
    FEATURE(a_conversation),
    FEATURE(an_answer_to_messages),
    FEATURE(another_answer),
    FEATURE(saved_and_restored_without_reading_again),
    FEATURE(a_stream_for_asynchronous_programs),
    FEATURE(cancelling_from_another_thread),
    FEATURE(a_text_that_goes_on),
    FEATURE(many_texts_together),
    FEATURE(length_of_the_context),
    FEATURE(maximum_length_of_an_answer),
    FEATURE(texts_that_end_an_answer),
    FEATURE(json_by_a_schema),
    FEATURE(a_grammar_gbnf_or_lark),
    FEATURE(a_regular_expression),
    FEATURE(how_likely_tokens_were),
    FEATURE(lora_adapters),
    FEATURE(guesses_of_a_draft_model),
    FEATURE(texts_as_vectors),
    FEATURE(documents_by_a_question),
    FEATURE(speech_as_text),
    FEATURE(kinds_of_errors),
};

static int is_wanted(const char *name, int n_names, char **names) {
    for (int i = 0; i < n_names; i++) {
        if (strcmp(names[i], name) == 0) return 1;
    }
    return n_names == 0;
}

int main(int n_arguments, char **arguments) {
    CHECK(n_arguments >= 8);
    OK(akunu_model_open(arguments[1], NULL, &model));
    adapter = arguments[2];
    embedder_folder = arguments[3];
    reranker_folder = arguments[4];
    whisper_folder = arguments[5];
    recording = arguments[6];
    empty_folder = arguments[7];
    for (size_t i = 0; i < sizeof FEATURES / sizeof *FEATURES; i++) {
        if (!is_wanted(FEATURES[i].name, n_arguments - 8, arguments + 8)) continue;
        FEATURES[i].run();
        printf("feature %s\n", FEATURES[i].name);
        fflush(stdout);
    }
    return akunu_model_free(model) == AKUNU_STATUS_OK ? 0 : 1;
}
