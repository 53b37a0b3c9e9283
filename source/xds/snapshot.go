package xds

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/envoy/rules"
	"hdsd/internal/yamlpb"
)

const maxSnapshotBytes = 1 << 30

// knownResources returns all resources in use, in any order.
func (s *Source) knownResources(now time.Time) []*discoveryv3.Resource {
	var list []*discoveryv3.Resource
	for _, t := range []*table{s.clusters, s.assignments} {
		for name, e := range t.entries {
			if e.good == nil || !t.subscribed(e) {
				continue
			}
			r := &discoveryv3.Resource{Name: name, Version: e.good.version, Resource: e.good.packed}
			if !e.lease.IsZero() || e.stale {
				r.Metadata = &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{receipt: stamp(e.good.updated)}}
			}
			if !e.expires.IsZero() {
				r.Ttl = durationpb.New(max(time.Nanosecond, e.expires.Sub(now)))
			}
			list = append(list, r)
		}
	}
	return list
}

// receipt is the key of the arrival of a resource with a lease, in a snapshot.
const receipt = "hdsd.received"

func stamp(t time.Time) *anypb.Any {
	packed, _ := anypb.New(timestamppb.New(t)) // a timestamp can be encoded
	return packed
}

// receivedAt returns the arrival of a resource of a snapshot, if that counts.
func receivedAt(r *discoveryv3.Resource) time.Time {
	t := &timestamppb.Timestamp{}
	if packed := r.GetMetadata().GetTypedFilterMetadata()[receipt]; packed == nil || packed.UnmarshalTo(t) != nil {
		return time.Time{}
	}
	return t.AsTime()
}

// servers identifies the servers of a source, and the node that they answer. Versions of another
// source's servers mean something else, and so do those for another node.
func (s *Source) servers() string {
	joined := strings.Join(s.settings.servers(), " ")
	if s.options.As == nil {
		return joined
	}
	node, _ := proto.MarshalOptions{Deterministic: true}.Marshal(s.options.As) // it was decoded
	return fmt.Sprintf("%s as %x", joined, sha256.Sum256(node))
}

// writeTo writes a DiscoveryResponse with the resources, one after the other.
// Its nonce is the time.
func writeTo(dest io.Writer, servers string, now time.Time, resources []*discoveryv3.Resource) error {
	first, err := proto.Marshal(&discoveryv3.DiscoveryResponse{VersionInfo: servers, Nonce: now.Format(time.RFC3339Nano)})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(dest, 64<<10)
	_, _ = w.Write(first) // Flush returns the error
	packed := &anypb.Any{TypeUrl: wrapperType}
	response := &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{packed}}
	var buffer []byte
	for _, r := range resources {
		if packed.Value, err = (proto.MarshalOptions{}).MarshalAppend(packed.Value[:0], r); err != nil {
			return err
		}
		if buffer, err = (proto.MarshalOptions{}).MarshalAppend(buffer[:0], response); err != nil {
			return err
		}
		_, _ = w.Write(buffer)
	}
	return w.Flush()
}

// restore restores the resources of the file, if it is of the same servers.
func (s *Source) restore() error {
	info, err := os.Stat(s.options.Snapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := yamlpb.ReadFile(s.options.Snapshot, maxSnapshotBytes)
	if err != nil {
		return err
	}
	response := &discoveryv3.DiscoveryResponse{}
	if err := proto.Unmarshal(data, response); err != nil {
		return fmt.Errorf("%s is no snapshot: %w", s.options.Snapshot, err)
	}
	if response.GetVersionInfo() != s.servers() {
		return nil
	}
	updates := map[string]*update{rules.Cluster: {}, rules.Assignment: {}}
	for _, packed := range response.GetResources() {
		item, wrapped := unwrap(packed, "")
		item.received = receivedAt(wrapped)
		if u := updates[item.body.GetTypeUrl()]; u != nil {
			u.items = append(u.items, item)
		}
	}
	written, err := time.Parse(time.RFC3339Nano, response.GetNonce())
	if err != nil { // a file of a release that wrote none
		written = info.ModTime()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restored = info.ModTime()
	for _, t := range []*table{s.clusters, s.assignments} {
		t.apply(updates[t.typeURL], written)
		if len(updates[t.typeURL].items) > 0 {
			t.talk.updated, t.talk.acked = written, written
		}
		for _, e := range t.entries {
			t.dropRefused(e)
		}
		for _, e := range s.assignments.entries {
			e.subscribedAt, e.overdue = time.Now(), false
			s.assignments.schedule(e)
		}
	}
	s.unasked = make(map[string]item)
	for _, resource := range updates[rules.Assignment].items {
		if s.assignments.entries[resource.name] == nil {
			s.unasked[resource.name] = resource
		}
	}
	s.options.Log.Info().Str("event", "upstream_restored").Str("source", s.options.Name).
		Int("clusters", len(s.clusters.entries)).Time("of", s.restored).Msg("the stored resources are used until the management server answers")
	return nil
}
