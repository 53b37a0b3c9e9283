package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// survey is all that was found and judged in one project.
type survey struct {
	project
	files, sets, refused int // refused: sets, by hdsd
	all                  []*judged
}

// surveyor has what it takes to judge.
type surveyor struct {
	hdsd  string
	judge *judge
	room  *room
	names *names
}

// project surveys one, a few sets at a time.
func (v *surveyor) project(ctx context.Context, p project) (*survey, error) {
	if err := p.fetch(ctx); err != nil {
		return nil, err
	}
	sets, err := find(p.folder)
	if err != nil {
		return nil, err
	}
	parts := make([]survey, len(sets))
	var done atomic.Int32
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, s := range sets {
		group.Go(func() error {
			if err := v.set(ctx, &parts[i], s); err != nil {
				return fmt.Errorf("%s: %v: %w", p.name, s.files, err)
			}
			fmt.Fprintf(os.Stderr, "\r%s: %d of %d sets ", p.name, done.Add(1), len(sets))
			return nil
		})
	}
	err = group.Wait()
	fmt.Fprintln(os.Stderr)
	whole := &survey{project: p, files: countFiles(sets)}
	for i := range parts {
		whole.add(&parts[i])
	}
	for _, j := range whole.all {
		j.project = p.name
	}
	return whole, err
}

func countFiles(sets []*set) int {
	files := map[string]bool{}
	for _, s := range sets {
		for _, file := range s.files {
			files[file] = true
		}
	}
	return len(files)
}

func (s *survey) add(part *survey) {
	s.files += part.files
	s.sets += part.sets
	s.refused += part.refused
	s.all = append(s.all, part.all...)
}

// set judges one, served in each way.
func (v *surveyor) set(ctx context.Context, to *survey, s *set) error {
	v.room.furnishSet(s)
	var outcomes [variants]*outcome
	for i := range outcomes {
		var err error
		if outcomes[i], err = serve(ctx, v.hdsd, s, variant(i), v.names.address()); err != nil {
			return err
		}
	}
	to.sets = 1
	if outcomes[0].refused != "" {
		to.refused = 1
	}
	secrets := field(field(s.bootstrap, "static_resources"), "secrets")
	for _, r := range s.resources {
		j := &judged{resource: r, file: s.files[0]}
		for i, o := range outcomes {
			j.take(o, variant(i))
		}
		var err error
		if j.envoy, err = v.judge.found(ctx, r, secrets); err != nil {
			return err
		}
		if err = v.published(ctx, s, j, outcomes[:], secrets); err != nil {
			return err
		}
		to.all = append(to.all, j)
	}
	return nil
}

// published has Envoy judge what each hdsd made of a resource: of a cluster
// whose endpoints are in it, what data planes take by EDS in their place as well.
func (v *surveyor) published(ctx context.Context, s *set, j *judged, outcomes []*outcome, secrets *yaml.Node) (err error) {
	for _, o := range outcomes {
		made := []*anypb.Any{o.published[j.key()]}
		inside := resource{url: assignmentURL, name: j.name}
		if j.url == clusterURL && takesEDS(made[0]) && !s.has(inside) {
			made = append(made, o.published[inside.key()])
		}
		endpoints := 0
		for _, packed := range made {
			if packed == nil || j.given != "" {
				continue
			}
			endpoints += endpointsOf(packed)
			if j.given, err = v.judge.published(ctx, packed, j.resource, secrets); err != nil {
				return err
			}
		}
		j.fewer = j.fewer || endpoints < j.resource.endpoints()
	}
	return nil
}

// endpointsOf counts those of what is published.
func endpointsOf(packed *anypb.Any) (n int) {
	c := &clusterv3.Cluster{LoadAssignment: &endpointv3.ClusterLoadAssignment{}}
	if packed.GetTypeUrl() == assignmentURL {
		_ = proto.Unmarshal(packed.GetValue(), c.LoadAssignment) // what cannot be decoded is the judge's to tell
	} else {
		_ = proto.Unmarshal(packed.GetValue(), c)
	}
	for _, group := range c.GetLoadAssignment().GetEndpoints() {
		n += len(group.GetLbEndpoints())
	}
	return n
}

// takesEDS tells whether a published cluster takes its endpoints by EDS.
func takesEDS(packed *anypb.Any) bool {
	c := &clusterv3.Cluster{}
	return packed != nil && proto.Unmarshal(packed.GetValue(), c) == nil && c.GetType() == clusterv3.Cluster_EDS
}

// take notes what one hdsd made of a resource.
func (j *judged) take(o *outcome, v variant) {
	c := o.clusters[j.name]
	if v == asItIs {
		j.published = o.published[j.key()] != nil
		if !j.published {
			j.ours = o.reason(j.name)
		}
	}
	if j.url != clusterURL {
		return
	}
	j.checked[v] = c.Checked
	aside := []string{}
	for _, q := range c.Quarantined {
		aside = append(aside, q.Reason)
	}
	if c.Checked {
		j.endpoints[v] = c.Endpoints - len(aside)
	}
	if v == naming {
		slices.Sort(aside)
		j.aside = slices.Compact(aside)
	}
}

func (o *outcome) reason(name string) string {
	if o.refused != "" {
		return reasonIn(o.refused, name)
	}
	for _, q := range o.clusters[name].Quarantined {
		if q.Address == "" {
			return q.Reason
		}
	}
	return cmp.Or(o.clusters[name].NoEndpointsReason, "no reason is given")
}
