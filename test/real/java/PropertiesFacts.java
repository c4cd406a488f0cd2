import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeMap;

/** Reads files of properties, one per line in base64, and prints their names and values, in base64 too. */
public final class PropertiesFacts {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            Properties found = new Properties();
            found.load(new ByteArrayInputStream(Base64.getDecoder().decode(lines.nextLine())));
            StringBuilder answer = new StringBuilder();
            new TreeMap<>(found).forEach((name, value) -> answer.append(encoded(name)).append('=').append(encoded(value)).append(' '));
            System.out.println(answer);
        }
    }

    private static String encoded(Object text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(text.toString().getBytes(StandardCharsets.UTF_8));
    }
}
