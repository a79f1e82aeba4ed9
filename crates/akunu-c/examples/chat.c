/* A conversation: chat MODEL [QUESTION...]
 *
 * Every question on the command line is asked in turn; without one, each line of standard input is a question. The answer
 * is printed as it comes, and Ctrl-C ends it.
 */
#include <akunu.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t interrupted = 0;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

/* Prints a piece, and ends the answer when Ctrl-C was pressed. */
static int print_piece(const char *text, size_t length, void *context) {
    size_t *n_bytes = context;
    *n_bytes += length;
    fwrite(text, 1, length, stdout);
    fflush(stdout);
    return interrupted;
}

static int complain(const char *what) {
    fprintf(stderr, "%s: %s\n", what, akunu_last_error());
    return 1;
}

static int ask(akunu_chat *chat, const char *question) {
    size_t n_bytes = 0;
    akunu_stop stop = AKUNU_STOP_END;
    interrupted = 0;
    akunu_status status = akunu_chat_ask(chat, question, print_piece, &n_bytes, &stop);
    if (status != AKUNU_STATUS_OK) {
        return complain(question);
    }
    const char *note = stop == AKUNU_STOP_CANCELLED ? " (stopped)" : stop == AKUNU_STOP_END ? "" : " (cut short)";
    printf("%s\n", note);
    return 0;
}

static int converse(akunu_chat *chat, int n_questions, char **questions) {
    for (int i = 0; i < n_questions; i++) {
        if (ask(chat, questions[i]) != 0) {
            return 1;
        }
    }
    char line[4096];
    while (n_questions == 0 && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (ask(chat, line) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(int n_arguments, char **arguments) {
    if (n_arguments < 2) {
        fprintf(stderr, "usage: %s MODEL [QUESTION...]\n", arguments[0]);
        return 2;
    }
    signal(SIGINT, on_interrupt);
    akunu_options *options = NULL;
    akunu_model *model = NULL;
    akunu_chat *chat = NULL;
    int failed = 0;
    if (akunu_options_new(&options) != AKUNU_STATUS_OK ||
        akunu_options_set_text(options, "system", "You are a helpful assistant.") != AKUNU_STATUS_OK ||
        akunu_options_set_number(options, "temperature", 0) != AKUNU_STATUS_OK ||
        akunu_options_set_number(options, "max_tokens", 256) != AKUNU_STATUS_OK) {
        failed = complain("the options");
    } else if (akunu_model_open(arguments[1], options, &model) != AKUNU_STATUS_OK) {
        failed = complain("the model");
    } else if (akunu_chat_new(model, options, &chat) != AKUNU_STATUS_OK) {
        failed = complain("the conversation");
    } else {
        failed = converse(chat, n_arguments - 2, arguments + 2);
    }
    akunu_chat_free(chat);
    akunu_model_free(model);
    akunu_options_free(options);
    return failed;
}
