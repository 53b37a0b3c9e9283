package relay

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
)

// TestANameGivenManyTimesIsKeptOnce: of the resources of a name in one response, only the last
// counts. The others are not kept, so that looking for a resource does not take longer.
func TestANameGivenManyTimesIsKeptOnce(t *testing.T) {
	t.Parallel()
	var wire []byte
	for i := range 300 {
		body := fields.AppendText(fields.AppendText(nil, 1, "web"), 28, fmt.Sprint(i)) // with another alt_stat_name each
		wire = fields.AppendBytes(wire, 2, resourceOf("web", body))
	}
	wire = fields.AppendText(fields.AppendText(wire, 4, clusters.typeURL()), 5, "1")
	s := benchServer()
	st := &stream{server: s, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
	response, err := st.respond(arrival{typeURL: clusters.typeURL(), wire: wire})
	if err != nil {
		t.Fatal(err)
	}
	if string(response) != string(wire) {
		t.Error("the response does not pass as it came")
	}
	if bodies := s.stock.byName[clusters]["web"].list(); len(bodies) != 1 || !hasText(bodies[0].wire, 28, "299") {
		t.Errorf("%d resources of the name are kept", len(bodies))
	}
}

// hasText reports whether an encoded message has a text.
func hasText(wire []byte, number protowire.Number, text string) (found bool) {
	_ = fields.Each(wire, func(f *fields.Field) bool {
		found = found || f.Is(number) && string(f.Value) == text
		return true
	})
	return found
}
