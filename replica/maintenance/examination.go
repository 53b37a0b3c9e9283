package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	configv1 "hdsd/gen/hdsd/config/v1"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/log/etcd"
	"hdsd/peer/certs"
	"hdsd/replica/link"
	"hdsd/store"
)

// patience bounds the wait for a server of etcd, and for a replica.
const patience = 3 * time.Second

// oldestEtcd is the minor version of the oldest release of etcd 3 that its makers keep safe.
const oldestEtcd = 5

// Finding is what is wrong with the replication of a configuration, or worth knowing.
type Finding struct {
	Field   string // of the configuration
	Message string
	Note    bool // nothing is wrong
	Warning bool // replicas work
}

// Examine connects to each server of etcd and to the other replicas as this replica would, and changes nothing.
func Examine(ctx context.Context, c *configv1.Config) []Finding {
	x := &examination{config: c}
	options, err := Options(c)
	if err != nil {
		return nil // package config reports it
	}
	options.Address = cmp.Or(options.Address, c.GetReplication().GetPeer().GetAddress())
	if x.servers(ctx, &options) {
		x.contents(ctx, options)
	}
	return x.found
}

// examination collects findings.
type examination struct {
	config *configv1.Config
	found  []Finding
}

func (x *examination) problem(field, format string, args ...any) {
	x.found = append(x.found, Finding{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (x *examination) warn(field, format string, args ...any) {
	x.found = append(x.found, Finding{Field: field, Message: fmt.Sprintf(format, args...), Warning: true})
}

func (x *examination) note(format string, args ...any) {
	x.found = append(x.found, Finding{Message: fmt.Sprintf(format, args...), Note: true})
}

// servers examines each server of etcd. It leaves those in the options that answer, and reports whether there are any.
func (x *examination) servers(ctx context.Context, o *etcd.Options) bool {
	all, failures := make([]etcd.ServerStatus, len(o.Endpoints)), make([]error, len(o.Endpoints))
	var running sync.WaitGroup
	for i, endpoint := range o.Endpoints {
		single := *o
		single.Endpoints = []string{endpoint}
		running.Go(func() { all[i], failures[i] = statusOf(ctx, single) })
	}
	running.Wait()
	var answering []string
	first := -1
	for i, endpoint := range o.Endpoints {
		field, s := fmt.Sprintf("replication.etcd.endpoints[%d]", i), &all[i]
		if failures[i] != nil {
			x.problem(field, "%s: %s", endpoint, failures[i])
			continue
		}
		if answering = append(answering, endpoint); first < 0 {
			first = i
		}
		switch {
		case s.Cluster != all[first].Cluster:
			x.problem(field, "%s is a member of another etcd cluster than %s: name the members of one", endpoint, o.Endpoints[first])
		case !s.Leader:
			x.problem(field, "%s has no leader: see that most members of etcd run, and reach each other", endpoint)
		case isOutdated(s.Version):
			x.warn(field, "%s is etcd %s: upgrade it to 3.%d or later", endpoint, s.Version, oldestEtcd)
		}
		x.note("etcd at %s answers: version %s", endpoint, s.Version)
	}
	if first >= 0 && slices.ContainsFunc(all, func(s etcd.ServerStatus) bool { return s.Full }) {
		x.problem("replication.etcd", "%s", etcd.ErrNoSpace)
	}
	o.Endpoints = answering
	return first >= 0
}

// isOutdated reports whether a version of etcd is older than oldestEtcd.
func isOutdated(version string) bool {
	var minor int
	n, err := fmt.Sscanf(version, "3.%d", &minor)
	return n == 1 && err == nil && minor < oldestEtcd
}

func statusOf(ctx context.Context, o etcd.Options) (etcd.ServerStatus, error) {
	p, err := etcd.OpenPrefix(o)
	if err != nil {
		return etcd.ServerStatus{}, err
	}
	defer p.Close()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Status(waiting)
}

// contents examines what this replica finds in etcd, and whether it may write there.
func (x *examination) contents(ctx context.Context, o etcd.Options) {
	p, err := etcd.OpenPrefix(o)
	if err != nil {
		return // found before
	}
	defer p.Close()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const field = "replication.etcd"
	found, err := p.Read(waiting)
	if err == nil {
		err = p.CheckWrite(waiting)
	}
	if err != nil && !errors.Is(err, etcd.ErrNoSpace) { // found before
		x.problem(field, "%s", err)
		return
	}
	granted, err := p.CheckSession(waiting, o.TTL)
	switch {
	case errors.Is(err, etcd.ErrNoSpace):
	case err != nil:
		x.problem(field, "%s", err)
	case granted > o.TTL:
		x.warn("replication.session_ttl", "etcd grants %v, not %v: a lost machine goes unnoticed so long; shorten etcd's --heartbeat-interval and --election-timeout for less", granted, o.TTL)
	}
	x.fleet(ctx, o.Prefix, &found)
	x.peers(ctx, found.Members)
}

// fleet compares the prefix with the database.
func (x *examination) fleet(ctx context.Context, prefix string, found *etcd.Contents) {
	switch {
	case found.Fleet == "" && found.Entries == 0:
		x.note("etcd has no fleet at %s yet: the first replica founds one", prefix)
	case found.Fleet != "":
		x.note("etcd has fleet %s at %s, with entries up to %d", found.Fleet, prefix, found.Head)
	}
	if found.Others > 0 {
		x.warn("replication.etcd.prefix", "keys below %s that are not of hdsd: %d; nothing else may write there: give hdsd a prefix of its own", prefix, found.Others)
	}
	cursor, err := store.CursorOf(ctx, x.config.GetDataDir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, store.ErrLocked):
		x.note("the database is in use, and was not compared with etcd")
	case err != nil:
		x.problem("data_dir", "%s", err)
	case cursor.Diverged && found.Fleet != "":
		x.problem("data_dir", "the database has a history that is not in the log of fleet %s: empty the folder, and the replica copies the database of another one; or 'hdsd replicas found' begins a fleet with it", found.Fleet)
	case cursor.Fleet != "" && !cursor.Diverged:
		if err := found.Check(cursor.Fleet, cursor.Sequence); err != nil {
			x.problem("replication.etcd.prefix", "%s", err)
		}
	}
}

// peers examines whether this replica reaches the others that have a session.
func (x *examination) peers(ctx context.Context, members []etcd.Member) {
	transport := insecure.NewCredentials()
	if files := x.config.GetReplication().GetPeer().GetTls(); files != nil {
		own, err := certs.New(files, certs.Options{Protocols: []string{"h2"}})
		if err != nil {
			return // package config reports it
		}
		defer own.Close()
		transport = credentials.NewTLS(own.Peer())
	}
	failures := make([]error, len(members))
	var running sync.WaitGroup
	for i, m := range members {
		if m.ID != x.config.GetNodeId() {
			running.Go(func() { failures[i] = greet(ctx, m.Address, transport) })
		}
	}
	running.Wait()
	for i, m := range members {
		switch {
		case m.ID == x.config.GetNodeId():
			x.note("replica %s has a session, at %s", m.ID, m.Address)
		case failures[i] != nil:
			x.problem("replication.peer", "replica %s at %s: %s", m.ID, m.Address, failures[i])
		default:
			x.note("replica %s at %s answers", m.ID, m.Address)
		}
	}
}

// greet asks a replica an empty question, which each release answers.
func greet(ctx context.Context, address string, transport credentials.TransportCredentials) error {
	conn, err := link.Dial(address, transport)
	if err != nil {
		return err
	}
	defer conn.Close()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err = replicav1.NewPeersClient(conn).Ask(waiting, &replicav1.AskRequest{Question: []byte("{}")}); err != nil {
		return errors.New(status.Convert(err).Message())
	}
	return nil
}
