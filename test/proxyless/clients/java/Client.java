import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import com.google.gson.JsonObject;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * Calls each target at a steady rate, and prints each call as a line of JSON.
 * Arguments: the deadline of a call and the pause after it, in milliseconds, and targets.
 */
public final class Client implements ClientInterceptor, Runnable {
  private static final Metadata.Key<String> PEER = Metadata.Key.of("peer", Metadata.ASCII_STRING_MARSHALLER);

  private final long deadline;
  private final long pause;
  private final String target;
  private volatile String peer = "";

  private Client(String deadline, String pause, String target) {
    this.deadline = Long.parseLong(deadline);
    this.pause = Long.parseLong(pause);
    this.target = target;
  }

  public static void main(String[] arguments) throws Exception {
    for (String target : Arrays.asList(arguments).subList(2, arguments.length)) {
      Thread thread = new Thread(new Client(arguments[0], arguments[1], target));
      thread.setDaemon(true);
      thread.start();
    }
    while (System.in.read() >= 0) {
    }
  }

  @Override
  public <Q, S> ClientCall<Q, S> interceptCall(MethodDescriptor<Q, S> method, CallOptions options, Channel next) {
    return new SimpleForwardingClientCall<Q, S>(next.newCall(method, options)) {
      @Override
      public void start(Listener<S> listener, Metadata headers) {
        super.start(new SimpleForwardingClientCallListener<S>(listener) {
          @Override
          public void onHeaders(Metadata received) {
            String said = received.get(PEER);
            peer = said == null ? "" : said;
            super.onHeaders(received);
          }
        }, headers);
      }
    };
  }

  @Override
  public void run() {
    HealthGrpc.HealthBlockingStub stub =
        HealthGrpc.newBlockingStub(Grpc.newChannelBuilder(target, InsecureChannelCredentials.create()).build()).withInterceptors(this);
    try {
      while (true) {
        call(stub);
        Thread.sleep(pause);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void call(HealthGrpc.HealthBlockingStub stub) {
    long began = System.nanoTime();
    String error = "";
    peer = "";
    try {
      stub.withDeadlineAfter(deadline, TimeUnit.MILLISECONDS).check(HealthCheckRequest.getDefaultInstance());
    } catch (StatusRuntimeException e) {
      error = e.getStatus().getCode() + ": " + e.getStatus().getDescription();
    }
    JsonObject line = new JsonObject();
    line.addProperty("target", target);
    line.addProperty("peer", peer);
    line.addProperty("error", error);
    line.addProperty("milliseconds", (System.nanoTime() - began) / 1_000_000);
    System.out.println(line);
  }
}
