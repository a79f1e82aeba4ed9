/* Texts as vectors and speech as text, and mistakes of a caller with them: hearing EMBEDDER WHISPER RECORDING */
#include "check.h"

#include <math.h>

enum { DIMENSIONS = 384 };

static float dot(const float *a, const float *b, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void texts_become_vectors(const char *path) {
    const char *texts[] = {"a cat sleeps", "the kitten is napping", "stock markets fell"};
    float vectors[3 * DIMENSIONS];
    akunu_embedder *embedder = NULL;
    size_t dimensions = 0, length = 0;
    CHECK(akunu_embedder_open(path, NULL, &embedder) == AKUNU_STATUS_OK);
    CHECK(akunu_embedder_dimensions(embedder, &dimensions) == AKUNU_STATUS_OK);
    CHECK(dimensions == DIMENSIONS);
    CHECK(akunu_embed(embedder, texts, 3, NULL, 0, &length) == AKUNU_STATUS_OK);
    CHECK(length == 3 * DIMENSIONS);
    CHECK(akunu_embed(embedder, texts, 3, vectors, length - 1, &length) == AKUNU_STATUS_MEMORY);
    CHECK(akunu_embed(embedder, texts, 3, vectors, length, &length) == AKUNU_STATUS_OK);
    const float *cat = vectors, *kitten = cat + DIMENSIONS, *market = kitten + DIMENSIONS;
    CHECK(fabsf(dot(cat, cat, DIMENSIONS) - 1) < 1e-4f);
    CHECK(dot(cat, kitten, DIMENSIONS) > dot(cat, market, DIMENSIONS) + 0.2f);
    CHECK(akunu_embed(embedder, NULL, 0, vectors, 0, &length) == AKUNU_STATUS_OK && length == 0);
    texts[1] = NULL;
    CHECK(akunu_embed(embedder, texts, 3, vectors, 3 * DIMENSIONS, &length) == AKUNU_STATUS_ARGUMENT);
    CHECK(strcmp(akunu_last_error(), "`texts[1]` is null") == 0);
    CHECK(akunu_embed(embedder, NULL, 3, vectors, 3 * DIMENSIONS, &length) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_embedder_dimensions(embedder, NULL) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_embedder_free(embedder) == AKUNU_STATUS_OK);
    CHECK(akunu_embedder_free(embedder) == AKUNU_STATUS_HANDLE);
    CHECK(akunu_embed(embedder, texts, 1, vectors, DIMENSIONS, &length) == AKUNU_STATUS_HANDLE);
}

static void vectors_can_be_shortened(const char *path) {
    const char *text = "a cat sleeps";
    float vector[32];
    akunu_options *options = NULL;
    akunu_embedder *embedder = NULL;
    size_t dimensions = 0, length = 0;
    CHECK(akunu_options_new(&options) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "dimensions", DIMENSIONS + 1) == AKUNU_STATUS_OK);
    CHECK(akunu_embedder_open(path, options, &embedder) == AKUNU_STATUS_ARGUMENT);
    CHECK(strstr(akunu_last_error(), "384") != NULL && embedder == NULL);
    CHECK(akunu_options_set_number(options, "dimensions", 32) == AKUNU_STATUS_OK);
    CHECK(akunu_embedder_open(path, options, &embedder) == AKUNU_STATUS_OK);
    CHECK(akunu_embedder_dimensions(embedder, &dimensions) == AKUNU_STATUS_OK && dimensions == 32);
    CHECK(akunu_embed(embedder, &text, 1, vector, 32, &length) == AKUNU_STATUS_OK && length == 32);
    CHECK(fabsf(dot(vector, vector, 32) - 1) < 1e-4f);
    CHECK(akunu_embedder_free(embedder) == AKUNU_STATUS_OK);
    CHECK(akunu_options_free(options) == AKUNU_STATUS_OK);
}

struct heard {
    akunu_transcriber *transcriber;
    int answer;
    size_t n_segments, n_words;
    double end;
    char text[1024];
};

static int hear(const akunu_segment *segment, void *context) {
    struct heard *heard = context;
    CHECK(segment->start >= 0 && segment->end > segment->start && strcmp(segment->language, "en") == 0);
    strncat(heard->text, segment->text, sizeof heard->text - strlen(heard->text) - 1);
    for (size_t i = 0; i < segment->n_words; i++) {
        CHECK(segment->words[i].end >= segment->words[i].start && strlen(segment->words[i].text) > 1);
    }
    heard->n_words += segment->n_words;
    heard->n_segments++;
    heard->end = segment->end;
    CHECK(akunu_transcribe(heard->transcriber, "again.wav", NULL, NULL, NULL) == AKUNU_STATUS_BUSY);
    return heard->answer;
}

static void speech_becomes_text(const char *path, const char *recording) {
    akunu_options *options = NULL;
    struct heard heard = {NULL, 0, 0, 0, 0, ""};
    CHECK(akunu_options_new(&options) == AKUNU_STATUS_OK);
    CHECK(akunu_options_set_number(options, "words", 1) == AKUNU_STATUS_OK);
    CHECK(akunu_transcriber_open(path, NULL, &heard.transcriber) == AKUNU_STATUS_OK);
    CHECK(akunu_transcribe(heard.transcriber, recording, options, hear, &heard) == AKUNU_STATUS_OK);
    CHECK(strstr(heard.text, "ask what you can do for your country") != NULL);
    CHECK(heard.n_words > 15 && heard.end > 9 && heard.end < 11.5);

    /* The callback ends it, though the recording has more. */
    struct heard ended = {heard.transcriber, 1, 0, 0, 0, ""};
    CHECK(akunu_transcribe(heard.transcriber, recording, NULL, hear, &ended) == AKUNU_STATUS_OK);
    CHECK(ended.n_segments == 1 && ended.n_words == 0);

    /* A recording of one window is the same in a batch; a batch has 1 to 16 windows. */
    struct heard batched = {heard.transcriber, 0, 0, 0, 0, ""};
    CHECK(akunu_options_set_number(options, "batch", 4) == AKUNU_STATUS_OK);
    CHECK(akunu_transcribe(heard.transcriber, recording, options, hear, &batched) == AKUNU_STATUS_OK);
    CHECK(strcmp(batched.text, heard.text) == 0);
    CHECK(akunu_options_set_number(options, "batch", 17) == AKUNU_STATUS_OK);
    CHECK(akunu_transcribe(heard.transcriber, recording, options, hear, &batched) == AKUNU_STATUS_ARGUMENT);
    CHECK(strstr(akunu_last_error(), "17 windows") != NULL);
    CHECK(akunu_options_set_number(options, "batch", 1) == AKUNU_STATUS_OK);

    CHECK(akunu_transcribe(heard.transcriber, "nowhere.wav", NULL, hear, &heard) == AKUNU_STATUS_NOT_FOUND);
    CHECK(strstr(akunu_last_error(), "nowhere.wav") != NULL);
    CHECK(akunu_transcribe(heard.transcriber, NULL, NULL, hear, &heard) == AKUNU_STATUS_ARGUMENT);
    CHECK(akunu_options_set_text(options, "language", "de") == AKUNU_STATUS_OK);
    CHECK(akunu_transcribe(heard.transcriber, recording, options, hear, &heard) == AKUNU_STATUS_ARGUMENT);
    CHECK(strstr(akunu_last_error(), "English") != NULL);
    CHECK(akunu_transcriber_free(heard.transcriber) == AKUNU_STATUS_OK);
    CHECK(akunu_transcriber_cancel(heard.transcriber) == AKUNU_STATUS_HANDLE);
    CHECK(akunu_options_free(options) == AKUNU_STATUS_OK);
}

int main(int n_arguments, char **arguments) {
    akunu_embedder *embedder = NULL;
    akunu_transcriber *transcriber = NULL;
    CHECK(n_arguments == 4);
    CHECK(akunu_embedder_open("nowhere", NULL, &embedder) == AKUNU_STATUS_NOT_FOUND);
    CHECK(akunu_transcriber_open("nowhere", NULL, &transcriber) == AKUNU_STATUS_NOT_FOUND);
    CHECK(akunu_transcriber_open(arguments[1], NULL, NULL) == AKUNU_STATUS_ARGUMENT);
    texts_become_vectors(arguments[1]);
    vectors_can_be_shortened(arguments[1]);
    speech_becomes_text(arguments[2], arguments[3]);
    return 0;
}
