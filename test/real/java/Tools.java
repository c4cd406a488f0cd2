import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one JVM, which saves a start of a second for each.
 *
 * One JSON request per line on stdin, one JSON answer per line on stdout:
 *
 * <pre>
 * {"main": "org.apache.kafka.tools.TopicCommand", "args": ["--list"], "stdin": "", "timeout_ms": 60000}
 * {"code": 0, "out": "", "err": ""}
 * </pre>
 *
 * A tool that calls Exit.exit ends there, as in a JVM of its own: its thread never runs again, its shutdown
 * hooks run, and what is printed later is not part of its output. The code is -1 if the tool did not end in time.
 */
public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Queue<Runnable> hooks = new ConcurrentLinkedQueue<>();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // logs go elsewhere, the pipe is for answers alone
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.write((run(JSON.readTree(line)).toString() + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // the threads of tools that have exited still wait
    }

    private static JsonNode run(JsonNode request) throws Exception {
        List<String> words = new ArrayList<>();
        request.get("args").forEach(word -> words.add(word.asText()));
        Method main = Class.forName(request.get("main").asText()).getMethod("main", String[].class);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        Exit.Procedure exit = (code, message) -> {
            ended.complete(code);
            while (true) {
                LockSupport.park();
            }
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        PrintStream outBefore = System.out;
        PrintStream errBefore = System.err;
        InputStream inBefore = System.in;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(request.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        try {
            Thread thread = new Thread(() -> {
                try {
                    main.invoke(null, (Object) words.toArray(new String[0]));
                    ended.complete(0);
                } catch (InvocationTargetException problem) {
                    System.err.print("Exception in thread \"main\" ");
                    problem.getCause().printStackTrace();
                    ended.complete(1);
                } catch (IllegalAccessException problem) {
                    ended.completeExceptionally(problem);
                }
            }, "main");
            thread.setDaemon(true);
            thread.start();
            int code = -1;
            try {
                code = ended.get(request.path("timeout_ms").asLong(60_000), TimeUnit.MILLISECONDS);
            } catch (TimeoutException late) {
                ended.complete(-1);
            }
            for (Runnable hook = hooks.poll(); hook != null; hook = hooks.poll()) {
                hook.run(); // some print their results there
            }
            return JSON.createObjectNode().put("code", code).put("out", out.toString(StandardCharsets.UTF_8))
                .put("err", err.toString(StandardCharsets.UTF_8));
        } finally {
            System.setOut(outBefore);
            System.setErr(errBefore);
            System.setIn(inBefore);
        }
    }
}
