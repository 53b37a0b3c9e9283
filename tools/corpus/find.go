package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	typePrefix    = "type.googleapis.com/"
	clusterURL    = typePrefix + "envoy.config.cluster.v3.Cluster"
	assignmentURL = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// resource is a Cluster or a ClusterLoadAssignment, as the text that it is.
type resource struct {
	url  string
	name string
	node *yaml.Node // without @type
}

// key tells resources of a set apart.
func (r resource) key() string { return r.url + " " + r.name }

func (r resource) kind() string { return r.url[strings.LastIndex(r.url, ".")+1:] }

// endpoints counts those in it.
func (r resource) endpoints() (n int) {
	walk(r.node, func(part *yaml.Node) bool {
		if all := field(part, "lb_endpoints"); all != nil && all.Kind == yaml.SequenceNode {
			n += len(all.Content)
			return false
		}
		return true
	})
	return n
}

// set is what one hdsd is given: a bootstrap, or resources.
type set struct {
	files     []string // within the project
	resources []resource
	bootstrap *yaml.Node // nil: a DiscoveryResponse
	verbatim  []byte     // the file as it is, where hdsd can read it so
	extension string
}

// maxBytes is the largest file that is looked into.
const maxBytes = 4 << 20

// find gives the sets of all files in a folder.
func find(root string) ([]*set, error) {
	finder := finder{loose: map[string]*set{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !looksLikeText(path) {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxBytes {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			finder.file(filepath.ToSlash(name), data)
		}
		return err
	})
	for _, s := range finder.sets {
		s.dropShown()
	}
	return finder.sets, err
}

// dropShown leaves out assignments of clusters that have their endpoints
// themselves: a config dump shows those of all clusters.
func (s *set) dropShown() {
	own := map[string]bool{}
	for _, r := range s.resources {
		own[r.name] = own[r.name] || r.url == clusterURL && field(r.node, "eds_cluster_config") == nil && !strings.EqualFold(text(r.node, "type"), "EDS")
	}
	kept := slices.DeleteFunc(slices.Clone(s.resources), func(r resource) bool { return r.url == assignmentURL && own[r.name] })
	if len(kept) < len(s.resources) {
		s.resources, s.verbatim = kept, nil
	}
}

func looksLikeText(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json", ".golden":
		return true
	default:
		return false
	}
}

// finder collects sets.
type finder struct {
	sets  []*set
	loose map[string]*set // resources that are in no bootstrap, by stem of file
}

func (f *finder) file(name string, data []byte) {
	all := documents(name, data)
	if len(all) == 1 && readable(all[0]) {
		f.whole(name, data, all[0])
		return
	}
	for _, document := range all {
		f.look(name, document)
	}
}

// readable tells whether hdsd reads a document as it is.
func readable(n *yaml.Node) bool {
	if field(n, "static_resources") != nil {
		return true
	}
	all := field(n, "resources")
	if all == nil || all.Kind != yaml.SequenceNode || field(n, "kind") != nil {
		return false
	}
	for _, r := range all.Content {
		if url := text(r, "@type"); url != clusterURL && url != assignmentURL && url != typePrefix+"envoy.service.discovery.v3.Resource" {
			return false
		}
	}
	return len(all.Content) > 0
}

// whole takes a file as it is.
func (f *finder) whole(name string, data []byte, document *yaml.Node) {
	s := &set{files: []string{name}, verbatim: data, extension: filepath.Ext(name)}
	if field(document, "static_resources") != nil {
		s.takeBootstrap(document)
	} else {
		part := finder{loose: map[string]*set{}}
		part.look(name, document)
		for _, found := range part.sets {
			s.resources = append(s.resources, found.resources...)
		}
	}
	if s.extension == ".golden" {
		s.verbatim = nil
	}
	if len(s.resources) > 0 {
		f.sets = append(f.sets, s)
	}
}

func (s *set) takeBootstrap(n *yaml.Node) {
	s.bootstrap = n
	clusters := field(field(n, "static_resources"), "clusters")
	if clusters == nil {
		return
	}
	for _, c := range clusters.Content {
		s.resources = append(s.resources, resource{url: clusterURL, name: text(c, "name"), node: c})
	}
}

// look takes what it finds in a node, however deep, texts within text included.
func (f *finder) look(file string, n *yaml.Node) {
	walk(n, func(n *yaml.Node) bool {
		switch {
		case field(n, "static_resources") != nil:
			s := &set{files: []string{file}}
			if s.takeBootstrap(n); len(s.resources) > 0 {
				f.sets = append(f.sets, s)
			}
			return false
		case n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n"):
			for _, document := range documents("", []byte(n.Value)) {
				if document.Kind != yaml.ScalarNode {
					f.look(file, document)
				}
			}
			return false
		}
		url := kindOf(n)
		if url == "" {
			return true
		}
		r := resource{url: url, name: text(n, "name"), node: untyped(n)}
		if url == assignmentURL {
			r.name = text(n, "cluster_name")
		}
		f.add(file, r)
		return false
	})
}

// kindOf gives the type URL of what a node is, or "". What does not say what it
// is has to have the fields of it, and none else.
func kindOf(n *yaml.Node) string {
	switch url := text(n, "@type"); {
	case url == clusterURL || url == assignmentURL:
		return url
	case url != "":
		return ""
	case field(n, "cluster_name") != nil && field(n, "endpoints") != nil && hasOnly(n, (*endpointv3.ClusterLoadAssignment)(nil).ProtoReflect().Descriptor()):
		return assignmentURL
	case field(n, "name") == nil || !hasOnly(n, (*clusterv3.Cluster)(nil).ProtoReflect().Descriptor()):
		return ""
	}
	for _, telling := range []string{"load_assignment", "eds_cluster_config", "lb_policy", "cluster_type", "load_balancing_policy"} {
		if field(n, telling) != nil {
			return clusterURL
		}
	}
	return ""
}

func hasOnly(n *yaml.Node, of protoreflect.MessageDescriptor) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if of.Fields().ByJSONName(camel(n.Content[i].Value)) == nil {
			return false
		}
	}
	return true
}

// add puts a resource to those of its file, and of the files that go with it. A
// second one of the same name begins another set: a config dump has several.
func (f *finder) add(file string, r resource) {
	for stem := stem(file); ; stem += "+" {
		s := f.loose[stem]
		if s == nil {
			s = &set{}
			f.loose[stem] = s
			f.sets = append(f.sets, s)
		}
		if !s.has(r) {
			s.put(file, r)
			return
		}
	}
}

func (s *set) has(r resource) bool {
	for _, other := range s.resources {
		if other.key() == r.key() {
			return true
		}
	}
	return false
}

func (s *set) put(file string, r resource) {
	if len(s.files) == 0 || s.files[len(s.files)-1] != file {
		s.files = append(s.files, file)
	}
	s.resources = append(s.resources, r)
}

// stem is what files of one set have in common: golden files are called
// NAME.clusters.yaml and NAME.endpoints.yaml.
func stem(file string) string {
	name := strings.TrimSuffix(file, filepath.Ext(file))
	for _, kind := range []string{".clusters", ".cluster", ".endpoints"} {
		name = strings.TrimSuffix(name, kind)
	}
	return name
}

// content is what hdsd is given, and the extension of the file.
func (s *set) content() ([]byte, string, error) {
	if s.verbatim != nil {
		return s.verbatim, s.extension, nil
	}
	document := s.bootstrap
	if document == nil {
		all := list()
		for _, r := range s.resources {
			all.Content = append(all.Content, typed(r.node, r.url))
		}
		document = mapping("resources", all)
	}
	data, err := yaml.Marshal(document)
	return data, ".yaml", err
}
