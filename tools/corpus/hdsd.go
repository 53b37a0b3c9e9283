package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// outcome is what hdsd makes of a set.
type outcome struct {
	refused   string                // why it does not start, empty where it does
	clusters  map[string]standing   // by name
	published map[string]*anypb.Any // by key
}

// standing is a cluster as /v1/clusters shows it.
type standing struct {
	Name        string
	Checked     bool
	Endpoints   int
	Quarantined []struct{ Address, Reason string }

	NoEndpointsReason string
}

// patience is how long an hdsd or an Envoy may take.
const patience = time.Minute

const configuration = `
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
data_dir: data
sources: [{name: corpus, config_source: {path_config_source: {path: %q}}, resolve_names: %t}]
`

const checkAll = `
default_health_checks:
- cluster_name_glob: "*"
  health_checks: [{timeout: 1s, interval: 5s, unhealthy_threshold: 2, healthy_threshold: 1, tcp_health_check: {}}]
`

// variant is how hdsd serves a set.
type variant int

const (
	asItIs   variant = iota
	checking         // with a default check for all clusters
	naming           // and with the names in clusters resolved
	variants
)

// serve starts an hdsd that serves a set, and asks it. A DNS server knows all names.
func serve(ctx context.Context, binary string, s *set, v variant, dns string) (o *outcome, err error) {
	folder, err := os.MkdirTemp("", "corpus-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	data, extension, err := s.content()
	if err != nil {
		return nil, err
	}
	file := "set" + extension
	settings := fmt.Sprintf(configuration, file, v == naming)
	if v >= checking {
		settings += checkAll
	}
	if v == naming {
		settings += fmt.Sprintf("dns: {resolvers: [%q]}\n", dns)
	}
	for name, data := range map[string][]byte{file: data, "hdsd.yaml": []byte(settings)} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return run(ctx, binary, folder)
}

// run starts hdsd in a folder, and stops it when it has answered.
func run(ctx context.Context, binary, folder string) (o *outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary, "serve", "-c", filepath.Join(folder, "hdsd.yaml"))
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = patience
	stderr, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	var said bytes.Buffer
	lines := bufio.NewReader(io.TeeReader(stderr, &said))
	grpcAddress, httpAddress := awaitServing(lines)
	if grpcAddress == "" {
		if err := command.Wait(); ctx.Err() != nil || command.ProcessState.ExitCode() != 1 {
			return nil, fmt.Errorf("hdsd ends without serving: %w: %s", errors.Join(err, ctx.Err()), said.String())
		}
		return &outcome{refused: strings.ReplaceAll(said.String(), folder+"/", "")}, nil
	}
	o = &outcome{}
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, lines); close(drained) }()
	awaitReady(ctx, "http://"+httpAddress)
	err = errors.Join(o.askClusters(ctx, "http://"+httpAddress, folder), o.askPublished(ctx, grpcAddress))
	cancel()
	<-drained
	_ = command.Wait() // which tells of the signal that ended it
	if code := command.ProcessState.ExitCode(); code != 0 {
		err = errors.Join(err, fmt.Errorf("hdsd exits with %d", code))
	}
	return o, err
}

// awaitServing gives the addresses, or "" where the process ended without.
func awaitServing(lines *bufio.Reader) (grpc, http string) {
	for {
		line, err := lines.ReadBytes('\n')
		var entry struct{ Event, GRPC, HTTP string }
		if json.Unmarshal(line, &entry) == nil && entry.Event == "serving" {
			return entry.GRPC, entry.HTTP
		}
		if err != nil {
			return "", ""
		}
	}
}

// awaitReady waits until hdsd has all that its source says, names resolved. Some of it may be
// wrong: then it is not ready, and says so where it is asked.
func awaitReady(ctx context.Context, server string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
		if err != nil {
			return
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

func (o *outcome) askClusters(ctx context.Context, server, folder string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/v1/clusters?pageSize=10000", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ Clusters []standing }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	o.clusters = map[string]standing{}
	for _, c := range answer.Clusters {
		for i := range c.Quarantined {
			c.Quarantined[i].Reason = strings.ReplaceAll(c.Quarantined[i].Reason, folder+"/", "")
		}
		o.clusters[c.Name] = c
	}
	return nil
}

func (o *outcome) askPublished(ctx context.Context, server string) error {
	connection, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	most := grpc.MaxCallRecvMsgSize(64 << 20)
	node := &corev3.Node{Id: "corpus"}
	clusters, err := clusterservicev3.NewClusterDiscoveryServiceClient(connection).
		FetchClusters(ctx, &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: clusterURL}, most)
	if err != nil {
		return err
	}
	assignments, err := endpointservicev3.NewEndpointDiscoveryServiceClient(connection).
		FetchEndpoints(ctx, &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: assignmentURL, ResourceNames: []string{"*"}}, most)
	if err != nil {
		return err
	}
	o.published = map[string]*anypb.Any{}
	for _, packed := range append(clusters.GetResources(), assignments.GetResources()...) {
		o.published[resource{url: packed.GetTypeUrl(), name: nameOf(packed.GetValue())}.key()] = packed
	}
	return nil
}

// nameOf reads field 1 of a message, which is its name.
func nameOf(data []byte) string {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return ""
		}
		if data = data[n:]; number == 1 && kind == protowire.BytesType {
			name, _ := protowire.ConsumeBytes(data)
			return string(name)
		}
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return ""
		}
		data = data[n:]
	}
	return ""
}
