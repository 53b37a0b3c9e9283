package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLibrariesWriteToTheLog writes with package log, and closes connections
// while answers are written, of which the REST gateway complains by gRPC's logger.
func TestLibrariesWriteToTheLog(t *testing.T) {
	clusters := goodClusters
	for i := range 2000 {
		clusters += fmt.Sprintf("  - lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.1.%d.%d, port_value: 80}}}}]\n", i/250, i%250)
	}
	clusters = strings.Replace(clusters, "endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]", "endpoints:", 1)
	dir := folder(t, map[string]string{"hdsd.yaml": goodConfig + anyAddresses, "clusters.yaml": clusters})
	s := serveLogged(t, filepath.Join(dir, "hdsd.yaml"))
	var serving struct{ HTTP string }
	if err := json.Unmarshal([]byte(s.await("serving")), &serving); err != nil {
		t.Fatal(err)
	}
	stdlog.Print("said by package log")
	s.await("library_trouble", `"level":"warn"`, `"library":"go"`, `"message":"said by package log"`)
	ctx, enough := context.WithCancel(t.Context())
	var client sync.WaitGroup
	client.Go(func() {
		for ctx.Err() == nil { // until it goes away while something is written, not made
			if err := goAway(serving.HTTP, "/v1/endpoints?pageSize=10000", 100); err != nil {
				t.Error(err)
				return
			}
		}
	})
	s.await("library_trouble", `"level":"warn"`, `"library":"grpc"`, "Failed to write response")
	enough()
	client.Wait()
	s.end()
}

// goAway asks so often that no socket holds all answers, and closes the
// connection once the first comes.
func goAway(address, path string, times int) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.WriteString(c, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n", times))
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 10_000))
	}
	return errors.Join(err, c.(*net.TCPConn).SetLinger(0)) // the server sees the end at once
}
