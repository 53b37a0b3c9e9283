package link

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/specifier"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica"
	"hdsd/ruling"
)

var write = flag.String("write", "", "write the frames of this release to a file in testdata")

// frames is the file with the frames of the first release, in hexadecimal, in the order of its messages. That release
// has written them by -write.
const frames = "testdata/frames-1.txt"

// released are messages of the first release, with all fields that it knows.
func released() []replica.Message {
	term, id := replica.Term{Epoch: 1 << 40, Round: 2}, log.OrderID{Process: 1<<63 + 5, Number: 9}
	since := time.Date(2026, 11, 29, 8, 0, 0, 5, time.UTC)
	until := since.Add(time.Hour)
	place := health.Locality{Region: "eu", Zone: "a", SubZone: "r1"}
	checker := &health.Checker{
		ID: "checker-1", Locality: place, Version: "envoy/1.40.0", Identity: "spiffe://a/checker", Weight: 1.5, MaxChecksPerSecond: 200,
		Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}}, Metadata: map[string]string{"rack": "7"},
	}
	order := func(number uint64, e machine.Event) replica.Order {
		return replica.Order{
			ID: log.OrderID{Process: id.Process, Number: number}, Event: e, Operator: &log.Operator{Identity: "ann.example", Address: "10.0.0.9:4711", Time: since},
		}
	}
	scope := health.Endpoint{Cluster: "web", Locality: place, Address: "10.0.0.1:80"}
	return []replica.Message{
		replica.Welcome{Term: term, Head: 77},
		replica.Report{Term: term, Full: true, Sessions: []replica.Session{
			{
				Checker: "checker-1", Number: 1<<63 + 1, Node: checker, Connected: true, Heard: true, Assigned: 3, Followed: 2, Votes: []replica.Vote{
					{Endpoint: 1<<64 - 1, Status: health.Unhealthy, HTTPStatusCode: http.StatusServiceUnavailable}, {Endpoint: 5, Status: health.Healthy, HTTPStatusCode: http.StatusOK},
				},
			},
			{Checker: "checker-2", Number: 4, Lost: true, Ended: true, Silent: true},
		}, Orders: []replica.Order{
			order(1, &machine.SetOverride{Override: log.Override{Scope: scope, Status: health.Draining, Reason: "kernel", Author: "ann", Since: since, Until: until}}),
			order(2, &machine.ClearOverrides{Scope: health.Endpoint{Cluster: "web"}, All: true, Author: "ann"}),
			order(3, &machine.Freeze{Author: "ann", Reason: "we move", Hold: true}),
			order(4, &machine.Unfreeze{Author: "ann"}),
			order(5, &machine.SetTrust{Checker: "checker-1", Trust: log.Trust{Level: log.Distrusted, Reason: "its disk", Author: "ann", Since: since}}),
			order(6, &machine.ClearTrust{Checker: "checker-1", Author: "ann"}),
			order(7, &machine.Annotate{Event: log.Event{
				Time: since, Kind: log.EventKind(9), Cluster: "web", Address: "10.0.0.1:80", Checker: "checker-1", Locality: place, Author: "ann", Identity: "ann.example",
				Text: "a note", Whole: true,
			}}),
		}},
		replica.Report{Term: term, Sessions: []replica.Session{{Checker: "checker-1", Number: 1<<63 + 1, Connected: true}}},
		replica.Directions{
			Term: term, Resend: []string{"checker-2"},
			Assignments: []replica.Assignment{{
				Checker: "checker-1", Session: 1<<63 + 1, Serial: 4, Endpoints: []health.Hash{1, 1<<64 - 1}, Specifier: &specifier.Specifier{
					Interval: time.Second, Serial: 4, Retell: true, Addresses: []string{"10.0.0.1:80", "@pipe"},
					Clusters: []specifier.Part{{Head: head("web", "/healthz"), Localities: []specifier.Group{{Locality: &corev3.Locality{Region: "eu"}, Entries: 1}, {Entries: 1}}}},
					Special:  map[int]*endpointv3.Endpoint{1: {Hostname: "web.example"}},
				},
			}},
			Refusals: []replica.Refusal{
				{ID: id, Err: &ruling.Refusal{NotFound: true, UnknownCluster: true, Text: `unknown cluster "a"`}}, {ID: id, Err: machine.ErrTrustFull}, {ID: id, Err: errors.New("another")},
			},
		},
	}
}

// releasedHello is the hello of the first release.
func releasedHello() *replicav1.Frame {
	return (&Options{ID: "hdsd-1", Process: 1<<63 + 7, Version: "0.1"}).hello("hdsd-2")
}

// TestMessagesOfTheFirstRelease covers what the first release sends: this one reads the same, and sends what means the
// same to the first release.
func TestMessagesOfTheFirstRelease(t *testing.T) {
	if *write != "" {
		writeFrames(t)
	}
	text, err := os.ReadFile(frames)
	if err != nil {
		t.Fatal(err)
	}
	hello, lines, _ := strings.Cut(string(text), "\n")
	messages := released()
	if got := strings.Count(lines, "\n"); got != len(messages) {
		t.Fatalf("%d frames of %d messages", got, len(messages))
	}
	if diff := cmp.Diff(releasedHello(), frameOf(t, hello), same); diff != "" {
		t.Errorf("(-this release +the first one)\n%s", diff)
	}
	if _, err := (&Options{ID: "hdsd-2"}).helloOf(frameOf(t, hello)); err != nil {
		t.Error(err)
	}
	d := newDecoder()
	for i, line := range strings.Fields(lines) {
		f := frameOf(t, line)
		if own, err := encode(messages[i]); err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(f, own, same); diff != "" {
			t.Errorf("message %d (-the first release +this one)\n%s", i, diff)
		}
		got, err := d.decode(f)
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		} else if diff := cmp.Diff(messages[i], got, same); diff != "" {
			t.Errorf("message %d (-sent +received)\n%s", i, diff)
		}
	}
}

// frameOf returns the frame of a line.
func frameOf(t *testing.T, line string) *replicav1.Frame {
	t.Helper()
	b, err := hex.DecodeString(line)
	f := new(replicav1.Frame)
	if err == nil {
		err = proto.Unmarshal(b, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	if unknown := f.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		t.Fatalf("unknown fields: %x", unknown)
	}
	return f
}

// writeFrames writes the frames of this release.
func writeFrames(t *testing.T) {
	t.Helper()
	hello, err := proto.Marshal(releasedHello())
	if err != nil {
		t.Fatal(err)
	}
	text := hex.EncodeToString(hello) + "\n"
	for _, m := range released() {
		text += hex.EncodeToString(carried(t, m)) + "\n"
	}
	if err := os.WriteFile(fmt.Sprintf("testdata/%s", *write), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
