import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.StringJoiner;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;

/**
 * Kafka's own record batches as a judge: one request per line on stdin, one answer per line on stdout.
 *
 * <pre>
 * write MAGIC CODEC BASE APPEND_TIME PRODUCER EPOCH SEQUENCE TRANSACTIONAL RECORD...  ->  HEX
 * marker TYPE PRODUCER EPOCH COORDINATOR_EPOCH TIMESTAMP                               ->  HEX
 * read HEX                                                                            ->  BATCH...
 * </pre>
 *
 * A record is OFFSET:TIMESTAMP:KEY:VALUE:NAME=VALUE,NAME=VALUE with keys, values and names in hexadecimal and "-" for
 * null. A batch is MAGIC/CODEC/BASE/LAST/TIMESTAMP_TYPE/PRODUCER/EPOCH/SEQUENCE/FLAGS, and its records after it. What
 * goes wrong is answered as "error CLASS TEXT". Kafka 3.9 is the last that writes all formats.
 */
public final class RecordsGolden {
    private static final HexFormat HEX = HexFormat.of();

    private RecordsGolden() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = switch (words[0]) {
                    case "write" -> write(words);
                    case "marker" -> marker(words);
                    case "read" -> read(words.length > 1 ? HEX.parseHex(words[1]) : new byte[0]);
                    default -> throw new IllegalArgumentException(words[0]);
                };
            } catch (RuntimeException error) {
                answer = "error " + error.getClass().getSimpleName() + " " + error.getMessage();
            }
            System.out.println(answer.replace('\n', ' '));
        }
    }

    private static String write(String[] words) {
        byte magic = Byte.parseByte(words[1]);
        Compression compression = Compression.of(CompressionType.forName(words[2])).build();
        long appendTime = Long.parseLong(words[4]);
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1 << 20),
            magic,
            compression,
            appendTime < 0 ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME,
            Long.parseLong(words[3]),
            appendTime,
            Long.parseLong(words[5]),
            Short.parseShort(words[6]),
            Integer.parseInt(words[7]),
            Boolean.parseBoolean(words[8]),
            -1);
        for (int at = 9; at < words.length; at++) {
            String[] parts = words[at].split(":", -1);
            long offset = Long.parseLong(parts[0]);
            long timestamp = Long.parseLong(parts[1]);
            if (magic < 2) {
                builder.appendWithOffset(offset, timestamp, bytes(parts[2]), bytes(parts[3]));
            } else {
                builder.appendWithOffset(offset, timestamp, bytes(parts[2]), bytes(parts[3]), headers(parts[4]));
            }
        }
        return hex(builder.build().buffer());
    }

    private static String marker(String[] words) {
        EndTransactionMarker marker =
            new EndTransactionMarker(ControlRecordType.valueOf(words[1]), Integer.parseInt(words[4]));
        return hex(MemoryRecords.withEndTransactionMarker(
            0L, Long.parseLong(words[5]), -1, Long.parseLong(words[2]), Short.parseShort(words[3]), marker).buffer());
    }

    private static String read(byte[] data) {
        StringJoiner answer = new StringJoiner(" ");
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            StringJoiner facts = new StringJoiner("/");
            facts.add(Byte.toString(batch.magic())).add(batch.compressionType().name);
            facts.add(Long.toString(batch.baseOffset())).add(Long.toString(batch.lastOffset()));
            facts.add(Integer.toString(batch.timestampType().id)).add(Long.toString(batch.producerId()));
            facts.add(Short.toString(batch.producerEpoch())).add(Integer.toString(batch.baseSequence()));
            facts.add((batch.isTransactional() ? "t" : "") + (batch.isControlBatch() ? "c" : ""));
            answer.add(facts.toString());
            for (Iterator<Record> records = batch.iterator(); records.hasNext(); ) {
                Record record = records.next();
                record.ensureValid();
                StringJoiner headers = new StringJoiner(",");
                for (Header header : record.headers()) {
                    headers.add(hex(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + hex(header.value()));
                }
                answer.add(record.offset() + ":" + record.timestamp() + ":" + hex(record.key()) + ":"
                    + hex(record.value()) + ":" + headers);
            }
        }
        return answer.toString();
    }

    private static Header[] headers(String text) {
        if (text.isEmpty()) {
            return new Header[0];
        }
        String[] pairs = text.split(",");
        Header[] headers = new Header[pairs.length];
        for (int at = 0; at < pairs.length; at++) {
            String[] pair = pairs[at].split("=", -1);
            headers[at] = new RecordHeader(new String(bytes(pair[0]), StandardCharsets.UTF_8), bytes(pair[1]));
        }
        return headers;
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : HEX.parseHex(text);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return HEX.formatHex(data);
    }

    private static String hex(byte[] data) {
        return data == null ? "-" : HEX.formatHex(data);
    }
}
