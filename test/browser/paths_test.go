package browser

import (
	"testing"

	"hdsd/health"
	"hdsd/internal/demo/upstream"
	"hdsd/test/envoy"
)

// TestTheMatrixOfPaths: how the checkers of one zone see the endpoints of another.
func TestTheMatrixOfPaths(t *testing.T) {
	c, server := site(t)
	envoy.StartChecker(t, envoy.Checker{ID: "checker-2", HDS: c.GRPC, Locality: health.Locality{Region: "eu", Zone: "b"}})
	b := open(t, c.HTTP, "/#/checkers")
	b.shows("eu/b\tnone of 1 down", true)
	server.Set(upstream.Status(503))
	b.shows("eu/b\t1 of 1 down", true)
	b.behaved()
}
