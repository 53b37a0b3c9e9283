package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// Answer is the answer for a name. It is immutable.
type Answer struct {
	Addresses []netip.Addr // the first is that of a LOGICAL_DNS cluster
	Known     bool         // there was an answer or a failure, or the wait is over
	Problem   string       // reason why the last lookup found no addresses; empty if it did
	IgnoreNew bool         // some that DNS no longer returns are healthy, so new ones can wait for a verdict
}

// Rewriter translates the sets of one source. It is pure.
type Rewriter struct {
	output *source.Set
	byName map[string]rewritten // clusters with names, by name

	// Complete reports whether each cluster of a set once had its addresses.
	Complete bool
}

// rewritten is a cluster, the answers used, and the result.
type rewritten struct {
	original *source.Cluster
	answers  []Answer
	result   *source.Cluster // nil while its names are not known
}

// Questions returns the questions of a set's clusters, and the names of the clusters of each.
func Questions(set *source.Set) (list []Question, clusters map[Question][]string) {
	clusters = map[Question][]string{}
	for _, c := range set.Clusters {
		for _, q := range questions(c) {
			if clusters[q] == nil {
				list = append(list, q)
			}
			clusters[q] = append(clusters[q], c.Name)
		}
	}
	return list, clusters
}

// Apply returns a set with addresses in place of the names. Until all were known once, its source
// counts as not answered.
func (r *Rewriter) Apply(set *source.Set, answer func(Question) Answer) *source.Set {
	result := &source.Set{Source: set.Source, Problems: slices.Clip(set.Problems), Awaited: set.Awaited, Unread: set.Unread}
	byName, complete := map[string]rewritten{}, true
	result.Clusters = make([]*source.Cluster, 0, len(set.Clusters))
	for _, c := range set.Clusters {
		list := questions(c)
		if len(list) == 0 {
			result.Clusters = append(result.Clusters, c)
			continue
		}
		entry, known := r.rewrite(c, list, answer)
		complete = complete && known
		if byName[c.Name] = entry; entry.result != nil {
			result.Clusters = append(result.Clusters, entry.result)
		}
		for i, a := range entry.answers {
			if a.Problem != "" {
				result.Problems = append(result.Problems, unresolved(c, list[i], a))
			}
		}
	}
	r.byName = byName
	r.Complete = r.Complete || complete && set.Answered()
	if !r.Complete && !complete && !result.Unread {
		result.Awaited = true
	}
	return r.handOn(set, result)
}

// rewrite translates one cluster, if everything is known.
func (r *Rewriter) rewrite(c *source.Cluster, list []Question, answer func(Question) Answer) (entry rewritten, known bool) {
	before := r.byName[c.Name]
	entry = rewritten{original: c, answers: make([]Answer, len(list))}
	answers, known := make(map[string]Answer, len(list)), true
	for i, q := range list {
		entry.answers[i] = answer(q)
		answers[q.Host] = entry.answers[i]
		known = known && entry.answers[i].Known
	}
	switch {
	case !known:
		entry.result = before.result
	case before.result != nil && before.original == c && slices.EqualFunc(before.answers, entry.answers, Answer.equal):
		entry.result = before.result
	default:
		entry.result = resolved(c, answers, list[0].Keep)
	}
	return entry, known
}

func (a Answer) equal(other Answer) bool {
	return a.Known == other.Known && a.IgnoreNew == other.IgnoreNew && slices.Equal(a.Addresses, other.Addresses)
}

// handOn returns the set itself if nothing in it was translated, and the one before if
// nothing has changed since.
func (r *Rewriter) handOn(set, next *source.Set) *source.Set {
	if len(r.byName) == 0 {
		r.output = set
		return set
	}
	last := r.output
	if last == nil || last.Awaited != next.Awaited || last.Unread != next.Unread ||
		!slices.Equal(last.Clusters, next.Clusters) || !slices.Equal(last.Problems, next.Problems) {
		r.output = next
	}
	return r.output
}

func unresolved(c *source.Cluster, q Question, a Answer) source.Problem {
	message := fmt.Sprintf("its name %q cannot be resolved: %s", q.Host, a.Problem)
	if len(a.Addresses) > 0 {
		message += " (its last addresses stay in use)"
	}
	return source.Problem{File: c.File, Line: c.Line, Resource: c.Name, Message: message}
}

// resolved makes an EDS cluster of one with names. single means that it has one address.
func resolved(c *source.Cluster, answers map[string]Answer, single bool) *source.Cluster {
	config := proto.CloneOf(c.Config)
	config.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	config.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{}

	a := c.Assignment.Message()
	a.ClusterName = c.ServiceName
	for _, group := range a.GetEndpoints() {
		var endpoints []*endpointv3.LbEndpoint
		used := map[string]*endpointv3.LbEndpoint{}
		for _, e := range group.GetLbEndpoints() {
			for _, endpoint := range endpointsOf(e, single, answers) {
				address := endpoint.GetEndpoint().GetAddress().GetSocketAddress()
				key := fmt.Sprint(address.GetAddress(), " ", address.GetPortValue())
				if address != nil && used[key] != nil { // an Envoy that resolves has it twice, by EDS once
					source.AddWeight(used[key], endpoint)
					continue
				}
				used[key] = endpoint
				endpoints = append(endpoints, endpoint)
			}
		}
		group.LbEndpoints = endpoints
	}
	copied := *c
	copied.Config, copied.Assignment = config, source.EncodeAssignment(a)
	copied.Names, copied.IgnoreNew = namesOf(answers), false
	for _, a := range answers {
		copied.IgnoreNew = copied.IgnoreNew || a.IgnoreNew
	}
	return &copied
}

// namesOf lists the names of a resolved cluster.
func namesOf(answers map[string]Answer) string {
	names := make([]string, 0, len(answers))
	for name := range answers {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// endpointsOf makes an endpoint for each address of a name. One that has an address
// already stays.
func endpointsOf(e *endpointv3.LbEndpoint, single bool, answers map[string]Answer) []*endpointv3.LbEndpoint {
	if !isName(e.GetEndpoint().GetAddress()) {
		return []*endpointv3.LbEndpoint{e}
	}
	name := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
	addresses := answers[hostOf(name)].Addresses
	if single && len(addresses) > 1 {
		addresses = addresses[:1]
	}
	endpoints := make([]*endpointv3.LbEndpoint, len(addresses))
	for i, address := range addresses {
		copied := proto.CloneOf(e)
		endpoint := copied.GetEndpoint()
		if endpoint.Hostname == "" {
			endpoint.Hostname = strings.TrimSuffix(name, ".")
		}
		endpoint.Address.Address.(*corev3.Address_SocketAddress).SocketAddress.Address = address.String() //nolint:forcetypeassert // only these are names
		endpoints[i] = copied
	}
	return endpoints
}
