package eds

import (
	"net/url"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/publish"
)

const xdstp = "xdstp://"

// aliasPrefix is the prefix of a type's names that are aliases of names without it.
func aliasPrefix(authority, typeURL string) string {
	return xdstp + authority + "/" + typeURL[strings.LastIndexByte(typeURL, '/')+1:] + "/"
}

// target returns the name that an alias stands for. Context parameters and directives are
// ignored.
func (t *table) target(name string) (target string, ok bool) {
	if t.prefix == "" {
		return "", false
	}
	rest, ok := strings.CutPrefix(name, t.prefix)
	if index := strings.IndexAny(rest, "?#"); index >= 0 {
		rest = rest[:index]
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	if !ok || rest == "" || strings.HasPrefix(rest, xdstp) || strings.Contains(rest, separator) {
		return "", false
	}
	return rest, true
}

// isAlias reports whether a name is an alias.
func (t *table) isAlias(name string) bool {
	_, ok := t.target(name)
	return ok
}

// aliasOf returns the alias of a name.
func aliasOf(prefix, name string) string {
	if strings.HasPrefix(name, xdstp) {
		return name
	}
	return prefix + (&url.URL{Path: name}).EscapedPath()
}

// alias makes a slot another name of the base. A resource published under the slot's own name
// has precedence.
type alias struct {
	table *table
	base  *slot

	// Guarded by the lock of the alias's slot, which is taken before the base's.
	derived [2]derived // frames derived from the base's, under the name of the slot: for most clients, and for gRPC
}

// current returns the latest frame under a name, under the lock of the alias's slot.
func (a *alias) current(name string, gRPC bool) *frame {
	f := a.base.currentFor(gRPC)
	if f == nil {
		return nil
	}
	return derivedFor(&a.derived, gRPC).derive(f, func() *frame { return a.table.renamed(f, name) })
}

// renamed returns a frame with the same content under another name, or nil if that cannot be
// encoded. A Cluster requests its assignment by an alias, too, since the authority names the
// server to ask.
func (t *table) renamed(f *frame, name string) *frame {
	message, service := f.bytes[f.value:], ""
	var err error
	if t.whole {
		message, service, err = renamedCluster(message, name, t.services)
	} else {
		var s *publish.Spliced
		if s, err = publish.Splice(message, name, func(int, int) bool { return false }); err == nil {
			message = s.Wire
		}
	}
	if err != nil {
		return nil
	}
	result := newFrame(t.typeURL, name, message)
	result.service, result.checked, result.needed = service, f.checked, f.needed
	result.setVersion(f.version)
	return result
}

func renamedCluster(message []byte, name, services string) (encoded []byte, service string, err error) {
	c := &clusterv3.Cluster{}
	if err = proto.Unmarshal(message, c); err != nil {
		return nil, "", err
	}
	if service = envoy.AssignmentName(c); service != "" {
		service = aliasOf(services, service)
		if c.EdsClusterConfig == nil {
			c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{}
		}
		c.EdsClusterConfig.ServiceName = service
	}
	c.Name = name
	encoded, err = deterministic.Marshal(c)
	return encoded, service, err
}

// link makes a new slot an alias if its name is one. It is called under the table's lock.
func (t *table) link(s *slot) {
	target, ok := t.target(s.name)
	if !ok {
		return
	}
	base := t.slots[target]
	if base == nil {
		base = t.add(target)
	}
	s.alias = &alias{table: t, base: base}
	base.mu.Lock()
	defer base.mu.Unlock()
	base.aliases = append(base.aliases, s)
}

// slotOf returns the slot of a name or, if only its target has one, a temporary slot. It is
// called under the table's lock.
func (t *table) slotOf(name string) *slot {
	if s := t.slots[name]; s != nil {
		return s
	}
	target, ok := t.target(name)
	if base := t.slots[target]; ok && base != nil {
		return &slot{name: name, alias: &alias{table: t, base: base}}
	}
	return nil
}

// unlink handles the removal of a slot. It is called under the locks of the table and the slot.
func (t *table) unlink(s *slot) {
	if s.alias == nil {
		return
	}
	base := s.alias.base
	base.mu.Lock()
	base.aliases = slices.DeleteFunc(base.aliases, func(alias *slot) bool { return alias == s })
	base.mu.Unlock()
	t.collect(base)
}

// baseName returns the name by which grants know a slot: that of the base.
func (s *slot) baseName() string {
	if s.alias != nil {
		return s.alias.base.name
	}
	return s.name
}

// hidden reports whether a slot exists only under another name, so that wildcard clients do not
// get it.
func (s *slot) hidden() bool {
	if s.alias == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resource == nil
}
