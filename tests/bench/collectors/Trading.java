// A thread that reads the clock, named "trading", beside one that makes 4 MiB of garbage a ms, "allocating".
// After so many milliseconds prints the gaps in its loop in ns, one a line.
import java.util.concurrent.locks.LockSupport;

public final class Trading {
    private static final int KEPT = 1024, BYTES = 16 << 10, SHORTEST_NS = 2000;
    private static final byte[][] last = new byte[KEPT][];
    private static final long[] gaps = new long[1 << 20];
    private static int n = 0;

    private static void allocate() {
        for (int at = 0;; at = (at + 1) % KEPT) {
            last[at] = new byte[BYTES];
            if (at % ((4 << 20) / BYTES) == 0)
                LockSupport.parkNanos(1_000_000L);
        }
    }

    private static void watch(long ns) {
        long start = System.nanoTime();
        for (long before = start; before - start < ns;) {
            long now = System.nanoTime();
            if (now - before > SHORTEST_NS && n < gaps.length)
                gaps[n++] = now - before;
            before = now;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        long ns = Long.parseLong(arguments[0]) * 1_000_000L;
        Thread trading = new Thread(() -> watch(200_000_000L), "trading"); // compiled before it counts
        trading.start();
        trading.join();
        n = 0;
        Thread allocating = new Thread(Trading::allocate, "allocating");
        allocating.setDaemon(true);
        allocating.start();
        trading = new Thread(() -> {
            try {
                Thread.sleep(200); // it is moved to its CPU
            } catch (InterruptedException e) {
                return;
            }
            watch(ns);
        }, "trading");
        trading.start();
        trading.join();
        for (int at = 0; at < n; at++)
            System.out.println(gaps[at]);
    }
}
