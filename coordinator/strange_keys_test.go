package coordinator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/etcd"
)

// TestStrangeKeys covers keys in etcd that no replica writes: answers stay possible, and the fleet goes on.
func TestStrangeKeys(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	server := etcd.Start(t)
	f := newFleet(t, server, static("web", address), "r1", "r2")
	for _, id := range []string{"r1", "r2"} {
		f.sites[id].ready()
	}
	f.sites["r1"].checker("c1")
	f.eventually("web", address, "HEALTHY")
	conn, err := grpc.NewClient(server.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	put := func(key, value string) {
		t.Helper()
		if _, err := etcdserverpb.NewKVClient(conn).Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	put("/hdsd/replicas/", "{}")
	put("/hdsd/replicas/\xff\x1b[2J", `{"address": "\u001b[2J\n", "version": "\u0000<script>", "started": "9999999-01-01T00:00:00Z"}`)
	put("/hdsd/replicas/a/b", "[]")
	put("/hdsd/replicas/"+strings.Repeat("x", 100_000), "no JSON")
	put("/hdsd/replicas/r9", `{"address": "::::", "version": "`+strings.Repeat("9", 100_000)+`", "started": "0000-01-01T00:00:00+23:00"}`)
	put("/hdsd/other", "x")
	put("/hdsd/logs", "x")
	status.Store(http.StatusServiceUnavailable)
	f.eventually("web", address, "UNHEALTHY")
	for id, s := range f.sites {
		s.eventually("another row", func() bool { _, text := s.get("/v1/replicas"); return strings.Contains(text, `"r9"`) })
		for _, path := range []string{"/v1/replicas", "/v1/status", "/v1/overview", "/v1/clients"} {
			if code, text := s.get(path); code != http.StatusOK || !json.Valid([]byte(text)) || strings.Contains(text, "\x1b") || len(text) > 10_000 {
				t.Errorf("%s: %s is %d, %d bytes: %.500s", id, path, code, len(text), text)
			}
		}
		answer, err := hdsdv1.NewQueryClient(s.dial()).ListReplicas(t.Context(), &hdsdv1.ListReplicasRequest{})
		if err != nil || len(answer.GetReplicas()) != 3 {
			t.Errorf("%s: %v, %v", id, fmt.Sprintf("%.500v", answer), err)
		}
	}
}
