package relay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/peer/limit"
)

// acknowledge has the client accept the responses of clusters that it has yet to answer.
func (p *playedStream) acknowledge(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	var nonces []string
	if l := p.ledgers[clusters]; l != nil {
		for _, o := range l.offers {
			nonces = append(nonces, o.nonce)
		}
	}
	p.mu.Unlock()
	for _, nonce := range nonces {
		ack, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: nonce, VersionInfo: "1"})
		if err == nil {
			_, err = p.sendRequest(ack)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoomIsGivenBackOnce, whatever control planes send, clients read, and changes of health push,
// wherever streams end: never is more taken than there is, and nothing in the end.
func TestRoomIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	const total = 2 << 20
	var responses [][]byte
	for _, typeURL := range []string{clusters.typeURL(), resourcev3.ListenerType} {
		for _, names := range []int{1, 400, 1500, 4000} {
			responses = append(responses, encodedResponse(t, typeURL, false, fmt.Sprint(names), names))
		}
	}
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			s := benchServer()
			s.options.WriteTimeout = 1 << 60
			s.answers.room = limit.NewRoom(total)
			begin := func() *playedStream {
				p := newPlayedStream(t, s, fmt.Sprint(random.IntN(3)), false)
				s.add(p.stream)
				return p
			}
			end := func(p *playedStream) {
				p.stop()
				s.remove(p.stream)
			}
			streams := make([]*playedStream, 6)
			for i := range streams {
				streams[i] = begin()
			}
			health := true
			for step := range 300 {
				i := random.IntN(len(streams))
				p := streams[i]
				switch random.IntN(8) {
				case 0, 1:
					select {
					case p.plane <- responses[random.IntN(len(responses))]:
					default:
					}
				case 2, 3, 4:
					select {
					case p.released <- struct{}{}:
					default:
					}
				case 5:
					p.acknowledge(t)
				case 6:
					health = !health
					s.SetHealth(health)
				case 7:
					switch random.IntN(6) {
					case 0:
						end(p)
						streams[i] = begin()
					case 1:
						time.Sleep(time.Duration(random.IntN(3)) * longestHold / 2)
					}
				}
				synctest.Wait()
				for len(p.got) > 0 {
					<-p.got
				}
				if taken := s.answers.room.Taken(); taken > total {
					t.Fatalf("seed %d, step %d: %d bytes are taken", seed, step, taken)
				}
			}
			for _, p := range streams {
				end(p)
			}
			synctest.Wait()
			if taken, waiting := s.answers.room.Taken(), s.answers.room.Waiting().Count; taken != 0 || waiting != 0 || len(s.answers.runs) != 0 {
				t.Errorf("seed %d: in the end %d bytes are taken, %d wait, and %d runs are left", seed, taken, waiting, len(s.answers.runs))
			}
			time.Sleep(time.Hour) // no timer goes off any more
			for _, p := range streams {
				if len(p.places.all) != 0 {
					t.Errorf("seed %d: %d places are left", seed, len(p.places.all))
				}
			}
		})
	}
}
