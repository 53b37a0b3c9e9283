package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// envoyVersion is the release that judges.
const envoyVersion = "1.40.0"

// management is the cluster that ADS is at.
const management = "corpus-management"

// alone is the name of the cluster in which an assignment is judged.
const alone = "corpus-assignment"

// around is the bootstrap around a resource that is judged alone: what it may
// name is there.
const around = `
node: {id: corpus, cluster: corpus, locality: {region: r, zone: z}}
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: corpus-management}}]}
bootstrap_extensions:
- name: envoy.bootstrap.internal_listener
  typed_config: {"@type": type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener}
static_resources: {secrets: [], clusters: []}
`

// world is what a resource is judged in: the clusters and secrets that it names.
func world(r resource, secrets *yaml.Node) ([]byte, error) {
	n := documents("", []byte(around))[0]
	static := field(n, "static_resources")
	if secrets != nil {
		field(static, "secrets").Content = secrets.Content
	}
	clusters := field(static, "clusters")
	for _, name := range companions(r) {
		clusters.Content = append(clusters.Content, mapping("name", quoted(name)))
	}
	return yaml.Marshal(n)
}

// companions are the clusters that one names.
func companions(r resource) []string {
	names := []string{management}
	had := map[string]bool{r.name: true, alone: true, management: true, "": true}
	add := func(n *yaml.Node) bool {
		if n.Kind == yaml.ScalarNode && !had[n.Value] {
			had[n.Value] = true
			names = append(names, n.Value)
		}
		return n.Kind == yaml.SequenceNode
	}
	walk(r.node, func(n *yaml.Node) bool {
		for _, name := range []string{"cluster_name", "cluster_names", "cluster"} {
			walk(field(n, name), add)
		}
		return true
	})
	return names
}

// judge asks Envoy. It may be used by several goroutines.
type judge struct {
	binary, folder string

	mu    sync.Mutex
	known map[[32]byte]string // what it said, by content
}

// probe finds out whether this Envoy can judge.
func (j *judge) probe(ctx context.Context) error {
	for text, taken := range map[string]bool{"{name: a}": true, "{name: a, type: EDS}": false} {
		said, err := j.found(ctx, resource{url: clusterURL, name: "a", node: documents("", []byte(text))[0]}, nil)
		if err != nil {
			return err
		}
		if (said == "") != taken {
			return fmt.Errorf("%s cannot judge: of the cluster %s it says %q", j.binary, text, said)
		}
	}
	return nil
}

// found judges a resource as it was found. What Envoy says is empty where it
// takes it.
func (j *judge) found(ctx context.Context, r resource, secrets *yaml.Node) (said string, err error) {
	node := r.node
	if r.url == assignmentURL {
		node = mapping("name", quoted(alone), word("type"), word("STATIC"), word("load_assignment"), node)
	}
	data, err := yaml.Marshal(mapping("static_resources", mapping("clusters", list(node))))
	if err != nil {
		return "", err
	}
	return j.validate(ctx, data, ".yaml", r, secrets)
}

// published judges what hdsd made of a resource.
func (j *judge) published(ctx context.Context, packed *anypb.Any, r resource, secrets *yaml.Node) (said string, err error) {
	c := &clusterv3.Cluster{}
	if packed.GetTypeUrl() == clusterURL {
		err = proto.Unmarshal(packed.GetValue(), c)
	} else {
		a := &endpointv3.ClusterLoadAssignment{}
		err = proto.Unmarshal(packed.GetValue(), a)
		c.Name, c.LoadAssignment = alone, a
	}
	if err != nil {
		return "", err
	}
	static := &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{c}}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&bootstrapv3.Bootstrap{StaticResources: static})
	if err != nil {
		return "", err
	}
	return j.validate(ctx, data, ".pb", r, secrets)
}

func (j *judge) validate(ctx context.Context, data []byte, extension string, r resource, secrets *yaml.Node) (said string, err error) {
	world, err := world(r, secrets)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(bytes.Join([][]byte{[]byte(extension), data, world}, []byte{0}))
	j.mu.Lock()
	said, ok := j.known[key]
	j.mu.Unlock()
	if ok {
		return said, nil
	}
	path, err := j.write(data, extension)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(path) }() // the room goes with all that is left
	if said, err = j.run(ctx, "--config-path", path, "--config-yaml", string(world)); err != nil {
		return "", fmt.Errorf("having Envoy judge %s: %w", r.name, err)
	}
	j.mu.Lock()
	j.known[key] = said
	j.mu.Unlock()
	return said, nil
}

// write puts data into a file of its own, as the same may be judged twice at a
// time.
func (j *judge) write(data []byte, extension string) (path string, err error) {
	file, err := os.CreateTemp(j.folder, "*"+extension)
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	return file.Name(), errors.Join(err, file.Close())
}

func (j *judge) run(ctx context.Context, arguments ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, j.binary, append(arguments,
		"--mode", "validate", "--log-level", "critical", "--disable-hot-restart", "--concurrency", "1")...)
	out, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && command.ProcessState == nil:
		return "", err
	case err != nil:
		return cause(string(out), command.ProcessState.String()), nil
	}
	return "", nil
}

// What a reason begins with and is not of it.
var logPrefix = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d [^\]]*\]\[\d+\]\[critical\]\[\w+\] \[[^\]]*\] (error initializing configuration ('[^']*': )?)?`)

// cause is what Envoy says of the reason, in one line.
func cause(out, state string) string {
	out = logPrefix.ReplaceAllString(out, "")
	if said := strings.Join(strings.Fields(out), " "); said != "" {
		return said
	}
	return state
}
