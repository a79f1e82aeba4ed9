/* Mistakes of a caller, and what each of them is answered: misuse MODEL FOLDER_OF_MODELS */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void null_is_an_argument(const char *path) {
    akunu_model *model = NULL;
    akunu_chat *chat = NULL;
    CHECK(akunu_model_open(NULL, NULL, &model) == AKUNU_STATUS_ARGUMENT);
    CHECK(strcmp(akunu_last_error(), "`path` is null") == 0);
    CHECK(akunu_model_open(path, NULL, NULL) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_model_open("\xff.gguf", NULL, &model) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_model_open("nowhere.gguf", NULL, &model) == AKUNU_STATUS_NOT_FOUND);
    CHECK(strstr(akunu_last_error(), "nowhere.gguf") != NULL);
    CHECK(akunu_chat_new(NULL, NULL, &chat) == AKUNU_STATUS_ARGUMENT);
    CHECK(model == NULL && chat == NULL);
    CHECK(akunu_model_free(NULL) == AKUNU_STATUS_OK);
}

static void options_are_checked(const char *path) {
    akunu_options *options = NULL;
    akunu_model *model = NULL;
    CHECK(akunu_options_new(&options) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "top_kk", 1) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_options_set_text(options, "device", "toaster") == AKUNU_STATUS_OK);
    CHECK(akunu_model_open(path, options, &model) == AKUNU_STATUS_ARGUMENT);
    CHECK(strstr(akunu_last_error(), "toaster") != NULL);
    CHECK(akunu_options_free(options) == AKUNU_STATUS_OK);
    CHECK(akunu_model_open(path, options, &model) == AKUNU_STATUS_HANDLE);
    CHECK(akunu_model_free((akunu_model *)options) == AKUNU_STATUS_HANDLE);
}

static void names_are_looked_up(const char *folder) {
    char path[4096];
    size_t length = 0;
    CHECK(akunu_fetch("smollm3", folder, path, sizeof path, &length) == AKUNU_STATUS_DOWNLOAD);
    CHECK(strstr(akunu_last_error(), "smollm2") != NULL);
    CHECK(akunu_fetch(NULL, folder, path, sizeof path, &length) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_fetch("smollm2", folder, path, sizeof path, NULL) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_fetch("smollm2", folder, path, 8, &length) == AKUNU_STATUS_MEMORY);
    CHECK(akunu_fetch("smollm2", folder, path, length + 1, &length) == AKUNU_STATUS_OK);
    CHECK(strcmp(path + length - 5, ".gguf") == 0);
}

static void tokens_go_there_and_back(akunu_model *model) {
    const char *text = "Hello, w\xc3\xb6rld <|im_end|>";
    uint32_t ids[64];
    char back[64];
    size_t n_ids = 0, length = 0;
    CHECK(akunu_tokenize(model, text, false, NULL, 0, &n_ids) == AKUNU_STATUS_OK);
    CHECK(n_ids > 5 && n_ids < 64);
    CHECK(akunu_tokenize(model, text, false, ids, n_ids - 1, &n_ids) == AKUNU_STATUS_MEMORY);
    CHECK(akunu_tokenize(model, text, false, ids, n_ids, &n_ids) == AKUNU_STATUS_OK);
    CHECK(akunu_detokenize(model, ids, n_ids, back, strlen(text), &length) == AKUNU_STATUS_MEMORY);
    CHECK(akunu_detokenize(model, ids, n_ids, back, strlen(text) + 1, &length) == AKUNU_STATUS_OK);
    CHECK(length == strlen(text) && strcmp(back, text) == 0);
    CHECK(akunu_detokenize(model, NULL, 3, back, sizeof back, &length) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_model_device(model, back, sizeof back, NULL) == AKUNU_STATUS_ARGUMENT);
}

struct heard {
    akunu_session *session;
    size_t n_pieces;
    char text[256];
};

static int remember(const char *text, size_t length, void *context) {
    struct heard *heard = context;
    heard->n_pieces++;
    CHECK(strlen(text) == length);
    strncat(heard->text, text, sizeof heard->text - strlen(heard->text) - 1);
    return 0;
}

/* Calls again from within, and frees what is in use. */
static int meddle(const char *text, size_t length, void *context) {
    struct heard *heard = context;
    remember(text, length, context);
    CHECK(akunu_session_truncate(heard->session, 0) == AKUNU_STATUS_BUSY);
    if (heard->n_pieces == 1) {
        CHECK(akunu_session_free(heard->session) == AKUNU_STATUS_OK);
        heard->session = NULL;
        return 1;
    }
    return 0;
}

static akunu_session *capital_of_france(akunu_model *model) {
    akunu_session *session = NULL;
    uint32_t ids[32];
    size_t n_ids = 0;
    CHECK(akunu_session_new(model, NULL, &session) == AKUNU_STATUS_OK);
    CHECK(akunu_tokenize(model, "The capital of France is", true, ids, 32, &n_ids) == AKUNU_STATUS_OK);
    CHECK(akunu_session_feed(session, ids, n_ids) == AKUNU_STATUS_OK);
    return session;
}

static void a_session_goes_on(akunu_model *model) {
    struct heard heard = {capital_of_france(model), 0, ""};
    akunu_options *options = NULL;
    akunu_stop stop = AKUNU_STOP_END;
    size_t before = 0, after = 0;
    CHECK(akunu_options_new(&options) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "max_tokens", 5) == AKUNU_STATUS_OK);
    CHECK(akunu_session_tokens(heard.session, NULL, 0, &before) == AKUNU_STATUS_OK);
    CHECK(akunu_session_generate(heard.session, options, remember, &heard, &stop) == AKUNU_STATUS_OK);
    CHECK(akunu_session_tokens(heard.session, NULL, 0, &after) == AKUNU_STATUS_OK);
    CHECK(stop == AKUNU_STOP_LENGTH && after == before + 5);
    CHECK(strstr(heard.text, "Paris") != NULL);

    /* The same again, up to a text that ends it; nobody listens. */
    CHECK(akunu_session_truncate(heard.session, before) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_text(options, "stop", "Paris") == AKUNU_STATUS_OK);
    CHECK(akunu_session_generate(heard.session, options, NULL, NULL, &stop) == AKUNU_STATUS_OK);
    CHECK(stop == AKUNU_STOP_STOP);
    CHECK(akunu_session_free(heard.session) == AKUNU_STATUS_OK);
    CHECK(akunu_session_free(heard.session) == AKUNU_STATUS_HANDLE);
    CHECK(akunu_session_cancel(heard.session) == AKUNU_STATUS_HANDLE);
    CHECK(akunu_options_free(options) == AKUNU_STATUS_OK);
}

static void a_callback_may_meddle(akunu_model *model) {
    struct heard heard = {capital_of_france(model), 0, ""};
    akunu_stop stop = AKUNU_STOP_END;
    CHECK(akunu_session_generate(heard.session, NULL, meddle, &heard, &stop) == AKUNU_STATUS_OK);
    CHECK(stop == AKUNU_STOP_CANCELLED && heard.n_pieces == 1 && heard.session == NULL);
}

/* Breaks when a forked child waits for threads that only its parent has. */
static void a_child_has_the_model_too(const char *path) {
    akunu_options *options = NULL;
    akunu_model *model = NULL;
    int status = -1;
    pid_t child;
    CHECK(akunu_options_new(&options) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_text(options, "device", "cpu") == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "threads", 2) == AKUNU_STATUS_OK);
    CHECK(akunu_model_open(path, options, &model) == AKUNU_STATUS_OK);
    a_session_goes_on(model);
    child = fork();
    if (child == 0) {
        alarm(600); /* ends the child if it waits for ever; valgrind takes minutes */
        a_session_goes_on(model);
        CHECK(akunu_model_free(model) == AKUNU_STATUS_OK);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    a_session_goes_on(model);
    CHECK(akunu_model_free(model) == AKUNU_STATUS_OK);
    CHECK(akunu_options_free(options) == AKUNU_STATUS_OK);
}

static void errors_have_codes(akunu_model *model) {
    akunu_options *options = NULL;
    akunu_session *session = NULL;
    akunu_chat *chat = NULL;
    uint32_t ids[64] = {0};
    CHECK(akunu_options_new(&options) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "context", 16) == AKUNU_STATUS_OK);
    CHECK(akunu_session_new(model, options, &session) == AKUNU_STATUS_OK);
    CHECK(akunu_session_feed(session, ids, 64) == AKUNU_STATUS_CONTEXT_FULL);
    CHECK(akunu_session_free(session) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "context", 1 << 23) == AKUNU_STATUS_OK);
    CHECK(akunu_session_new(model, options, &session) == AKUNU_STATUS_OUT_OF_MEMORY);
    CHECK(akunu_options_set_number(options, "context", 256) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "temperature", 0) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_text(options, "stop", "Paris") == AKUNU_STATUS_OK);
    CHECK(akunu_chat_new(model, options, &chat) == AKUNU_STATUS_OK);
    akunu_stop stop = AKUNU_STOP_END;
    CHECK(akunu_chat_ask(chat, "What is the capital of France?", NULL, NULL, &stop) == AKUNU_STATUS_OK);
    CHECK(stop == AKUNU_STOP_STOP);
    CHECK(akunu_chat_free(chat) == AKUNU_STATUS_OK);
    CHECK(akunu_options_free(options) == AKUNU_STATUS_OK);
}

static void a_chat_refuses_what_it_cannot_do(akunu_model *model) {
    akunu_options *options = NULL;
    akunu_chat *chat = NULL;
    OK(akunu_options_new(&options));
    CHECK(akunu_options_set_number(options, "lora_scale", 1) == AKUNU_STATUS_ARGUMENT);
    OK(akunu_chat_new(model, options, &chat));
    CHECK(akunu_chat_regenerate(chat, NULL, NULL, NULL) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_chat_restore(chat, "nowhere.json") == AKUNU_STATUS_NOT_FOUND);
    OK(akunu_chat_free(chat));
    OK(akunu_options_set_text(options, "grammar", "root ::= ("));
    CHECK(akunu_chat_new(model, options, &chat) == AKUNU_STATUS_ARGUMENT);
    OK(akunu_options_free(options));
    OK(akunu_options_new(&options));
    OK(akunu_options_set_text(options, "lora", "nowhere.gguf"));
    CHECK(akunu_chat_new(model, options, &chat) == AKUNU_STATUS_NOT_FOUND);
    OK(akunu_options_free(options));
}

static void *cancel(void *context) {
    CHECK(strcmp(akunu_last_error(), "") == 0);
    CHECK(akunu_chat_cancel(context) == AKUNU_STATUS_OK);
    return NULL;
}

static int cancel_from_elsewhere(const char *text, size_t length, void *context) {
    pthread_t thread;
    (void)text;
    (void)length;
    CHECK(pthread_create(&thread, NULL, cancel, context) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}

/* The model was freed before: the chat keeps it. */
static void another_thread_cancels(akunu_chat *chat) {
    akunu_stop stop = AKUNU_STOP_END;
    CHECK(akunu_chat_say(chat, "user", "Count from one to a hundred.") == AKUNU_STATUS_OK);
    CHECK(akunu_chat_answer(chat, cancel_from_elsewhere, chat, &stop) == AKUNU_STATUS_OK);
    CHECK(stop == AKUNU_STOP_CANCELLED);
    CHECK(akunu_chat_reset(chat) == AKUNU_STATUS_OK);
    CHECK(akunu_chat_free(chat) == AKUNU_STATUS_OK);
    CHECK(akunu_chat_ask(chat, "Hello", NULL, NULL, NULL) == AKUNU_STATUS_HANDLE);
}

int main(int n_arguments, char **arguments) {
    akunu_model *model = NULL;
    akunu_chat *chat = NULL;
    CHECK(n_arguments == 3);
    CHECK(strlen(akunu_version()) > 0 && strcmp(akunu_last_error(), "") == 0);
    null_is_an_argument(arguments[1]);
    options_are_checked(arguments[1]);
    names_are_looked_up(arguments[2]);
    CHECK(akunu_model_open(arguments[1], NULL, &model) == AKUNU_STATUS_OK);
    tokens_go_there_and_back(model);
    a_session_goes_on(model);
    a_callback_may_meddle(model);
    errors_have_codes(model);
    a_chat_refuses_what_it_cannot_do(model);
    a_child_has_the_model_too(arguments[1]);
    CHECK(akunu_chat_new(model, NULL, &chat) == AKUNU_STATUS_OK);
    CHECK(akunu_model_free(model) == AKUNU_STATUS_OK);
    CHECK(akunu_model_device(model, NULL, 0, NULL) == AKUNU_STATUS_HANDLE);
    another_thread_cancels(chat);
    return 0;
}
