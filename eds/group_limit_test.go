package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestNamesOfWhatIsGoneCountInAGroup: a group of names whose resources are gone is no way
// around limits.max_subscriptions. Who asked before they went keeps them, as without groups.
func TestNamesOfWhatIsGoneCountInAGroup(t *testing.T) {
	inBubble(t, Options{Names: namesPool(0, 3)}, func(t *testing.T, b *bench) {
		names := madeUp("real", 20)
		b.publish(names...)
		early, late := b.delta(), b.delta()
		early.send(subscribe(resourcev3.EndpointType, names...))
		early.send(ack(early.next()))
		b.remove(names...)
		late.send(subscribe(resourcev3.EndpointType, names...))
		if err := <-late.ended; status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the late client ends with %v", err)
		}
		early.cancel()
		late.cancel()
	})
}
