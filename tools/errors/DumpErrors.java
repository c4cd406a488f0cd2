import org.apache.kafka.common.protocol.Errors;

/** Prints the error codes of a kafka-clients jar as JSON: code, name, exception class and its ancestors. */
public class DumpErrors {
    public static void main(String[] args) {
        StringBuilder out = new StringBuilder("[\n");
        String separator = "";
        for (Errors error : Errors.values()) {
            out.append(separator).append(String.format("  {\"code\": %d, \"name\": \"%s\", \"ancestors\": [",
                error.code(), error.name()));
            separator = ",\n";
            if (error.exception() != null) {
                String comma = "";
                for (Class<?> c = error.exception().getClass(); c != RuntimeException.class; c = c.getSuperclass()) {
                    out.append(comma).append('"').append(c.getSimpleName()).append('"');
                    comma = ", ";
                }
            }
            out.append("]}");
        }
        System.out.println(out.append("\n]"));
    }
}
