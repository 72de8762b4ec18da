/* A main for fuzz targets without libFuzzer: runs the target over files, or over all of its corpus if none is named. The name
 * of the program says which corpus: fuzz_op_msg reads tests/fuzz/corpus/op_msg/. A crash names the file last printed. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as many bytes as the file has, on the heap: so that the sanitizer sees a read past the end. */
static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        if (f)
            fclose(f);
        return 1;
    }
    size_t n = (size_t)st.st_size;
    uint8_t *data = malloc(n ? n : 1);
    if (!data || fread(data, 1, n, f) != n) {
        fprintf(stderr, "%s: cannot be read\n", path);
        abort();
    }
    fclose(f);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 0;
}

static int run_folder(const char *folder, int *passed)
{
    DIR *d = opendir(folder);
    int failed = 0;
    if (!d) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return 1;
    }
    for (struct dirent *e; (e = readdir(d));) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (run_file(path))
            failed++;
        else
            ++*passed;
    }
    closedir(d);
    return failed;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    char folder[256];
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        if (run_file(argv[i]))
            failed++;
        else
            passed++;
    }
    if (argc == 1) {
        snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name);
        failed = run_folder(folder, &passed);
        if (passed == 0)
            failed++; /* a target without seeds proves nothing */
    }
    printf("suite %s: %d passed, %d failed\n", name, passed, failed);
    return failed != 0;
}
