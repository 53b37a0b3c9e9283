package feed

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/renameio/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/internal/yamlpb"
	"hdsd/source"
	"hdsd/source/hold"
)

// maxHeldBytes is the size limit of a file with the held part of a source.
const maxHeldBytes = 1 << 30

// heldFile returns the path of the file that keeps the held part of a source over a restart.
func (f *Feed) heldFile(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(f.options.Dir, fmt.Sprintf("held-source-%x.pb", hash[:8]))
}

// keepHeld writes the held part of a source, or removes the file.
func (f *Feed) keepHeld(name string, saved []hold.Saved) {
	if err := writeHeld(f.heldFile(name), name, saved); err != nil {
		f.options.Log.Error().Str("event", "shrinkage_not_kept").Str("source", name).Err(err).
			Msg("what is held of the source is not on disk: a restart would follow the source at once")
	}
}

func writeHeld(path, name string, saved []hold.Saved) error {
	if len(saved) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := proto.Marshal(heldMessage(name, saved))
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// restoreHeld restores the parts held before the start.
func (f *Feed) restoreHeld(now time.Time, names []string) {
	for _, name := range names {
		saved, err := readHeld(f.heldFile(name), name)
		if err != nil {
			f.options.Log.Error().Str("event", "shrinkage_not_kept").Str("source", name).Err(err).
				Msg("what was held of the source before the start cannot be read")
			continue
		}
		if len(saved) > 0 {
			guard := f.intake.guards.find(name)
			guard.hold.Restore(now, saved)
			guard.revision = guard.hold.Held().Revision
		}
	}
}

func readHeld(path, name string) ([]hold.Saved, error) {
	data, err := yamlpb.ReadFile(path, maxHeldBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &storev1.HeldSource{}
	if err := proto.Unmarshal(data, m); err != nil || m.GetSource() != name {
		return nil, fmt.Errorf("%s is no file of what is held: remove it", path)
	}
	list := make([]hold.Saved, 0, len(m.GetClusters()))
	for _, c := range m.GetClusters() {
		held, err := savedOf(name, c)
		if err != nil {
			return nil, fmt.Errorf("%s: cluster %q: %w", path, c.GetName(), err)
		}
		list = append(list, held)
	}
	return list, nil
}

func heldMessage(name string, saved []hold.Saved) *storev1.HeldSource {
	m := &storev1.HeldSource{Source: name}
	for _, s := range saved {
		c := &storev1.HeldCluster{
			Name: s.Cluster.Name, ServiceName: s.Cluster.ServiceName, File: s.Cluster.File, Lone: s.Cluster.Lone, Rejected: s.Cluster.Rejected,
		}
		if s.Cluster.Config != nil {
			c.Config = encode(s.Cluster.Message())
		}
		if s.Cluster.Assignment != nil {
			c.Assignment = slices.Concat([]byte{}, s.Cluster.Assignment.Wire())
		}
		if !s.Taken.IsZero() {
			c.Taken = timestamppb.New(s.Taken)
		}
		for address, taken := range s.Endpoints {
			c.Endpoints = append(c.Endpoints, &storev1.HeldEndpoint{Address: address, Taken: timestamppb.New(taken)})
		}
		m.Clusters = append(m.Clusters, c)
	}
	return m
}

// encode never fails for a message that was decoded. It returns bytes even for an empty
// one.
func encode(m proto.Message) []byte {
	data, _ := proto.Marshal(m)
	return slices.Concat([]byte{}, data)
}

func savedOf(name string, c *storev1.HeldCluster) (hold.Saved, error) {
	s := hold.Saved{
		Cluster: &source.Cluster{
			Source: name, Name: c.GetName(), ServiceName: c.GetServiceName(), File: c.GetFile(), Lone: c.GetLone(), Rejected: c.GetRejected(),
		},
		Endpoints: make(map[string]time.Time, len(c.GetEndpoints())),
	}
	if c.Config != nil {
		s.Cluster.Config = &clusterv3.Cluster{}
		if err := proto.Unmarshal(c.GetConfig(), s.Cluster.Config); err != nil {
			return s, err
		}
		s.Cluster.HealthChecks = s.Cluster.Config.GetHealthChecks()
		source.TakeEndpoints(s.Cluster.Config) // they are in the assignment, too
	}
	if c.Assignment != nil {
		assignment := &endpointv3.ClusterLoadAssignment{}
		if err := proto.Unmarshal(c.GetAssignment(), assignment); err != nil {
			return s, err
		}
		s.Cluster.Assignment = source.EncodeAssignment(assignment)
	}
	if c.Taken == nil && len(c.GetEndpoints()) == 0 {
		return s, errors.New("nothing of it is held: remove the file")
	}
	var err error
	if c.Taken != nil {
		if s.Taken, err = takenAt(c.GetTaken()); err != nil {
			return s, err
		}
	}
	for _, e := range c.GetEndpoints() {
		if s.Endpoints[e.GetAddress()], err = takenAt(e.GetTaken()); err != nil {
			return s, err
		}
	}
	return s, nil
}

// takenAt reads the time of a removal. The zero time would end no hold.
func takenAt(timestamp *timestamppb.Timestamp) (time.Time, error) {
	if !timestamp.IsValid() || timestamp.AsTime().IsZero() {
		return time.Time{}, errors.New("a time when something was taken away cannot be read: remove the file")
	}
	return timestamp.AsTime(), nil
}
