package hds_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"

	"hdsd/hds"
)

// TestWhatCannotBeShownIsRefused: a checker whose names would act on a terminal does not
// join.
func TestWhatCannotBeShownIsRefused(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		for _, evil := range []string{"\x1b[2J", "a\u202eb", "a\nb", "\u009b31m"} {
			for _, node := range []*corev3.Node{
				{Id: evil}, {Id: "a", Cluster: evil}, {Id: "a", UserAgentName: evil},
				{Id: "a", Locality: &corev3.Locality{Region: evil}}, {Id: "a", Locality: &corev3.Locality{Zone: evil}},
				{Id: "a", Locality: &corev3.Locality{SubZone: evil}},
				{Id: "a", UserAgentName: "envoy", UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: evil}},
			} {
				c := f.open(f.dial("10.1.0.1"))
				c.send(hello(node))
				c.fails(codes.InvalidArgument, "cannot be shown")
			}
		}
		same(t, "calls", f.sink.take())
		f.connect("größe-支付", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected größe-支付")
	})
}
