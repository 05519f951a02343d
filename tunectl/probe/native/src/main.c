#include "complain.h"
#include "options.h"

int main(int argc, char **argv)
{
    struct options options;
    int status = options_parse(&options, argc, argv);
    if (status)
        return status;
    switch (options.command) {
    case COMMAND_JITTER:
        return jitter_main(&options.jitter);
    case COMMAND_BENCH:
        return bench_main(&options.bench);
    case COMMAND_WAKE:
        return wake_main(&options.wake);
    case COMMAND_SELFTEST:
        return selftest_main(&options.selftest);
    case COMMAND_SENTINEL:
        return sentinel_main(&options.sentinel);
    default:
        return EXIT_OK;
    }
}
