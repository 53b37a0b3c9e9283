package recording

import (
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/catalog"
	"hdsd/envoy"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/redact"
	"hdsd/source"
)

// delivery encodes clusters.
func (w *Writer) delivery(d *catalog.Delivery) error {
	o := &w.out
	if o.bool(d.Rules != w.rules); d.Rules != w.rules {
		w.rules = d.Rules
		o.message(hidden(w.hide, d.Rules.Config()))
	}
	o.texts(slices.Sorted(maps.Keys(d.Answered)))
	o.bool(d.Complete)
	o.texts(d.Removed)
	for _, name := range d.Removed {
		delete(w.sources, name)
	}
	o.uint(uint64(len(d.Changed)))
	for i := range d.Changed {
		w.change(&d.Changed[i])
		if err := w.drain(); err != nil {
			return err
		}
	}
	return nil
}

// change encodes a prepared cluster: its source, and what a secret in that has had a part in.
func (w *Writer) change(change *catalog.Change) {
	o, k := &w.out, change.Cluster
	name := k.Latest.Name
	o.text(name)
	if o.bool(w.sources[name] != k.Source); w.sources[name] != k.Source {
		w.sources[name] = k.Source
		w.source(k.Source)
	}
	if o.bool(k.Latest != k.Source); k.Latest != k.Source {
		w.source(k.Latest)
		o.text(k.Rejected)
	}
	o.uint(uint64(len(change.Renewed)))
	for _, renewed := range change.Renewed {
		o.bool(renewed)
	}
	o.fixed(endpointsOf(k))
	o.shapes(k.Shapes, w.hide)
}

// endpointsOf returns a digest of the endpoints that are checked, in their order.
func endpointsOf(k *catalog.Cluster) uint64 {
	var o output
	for _, hash := range k.Hashes {
		o.fixed(uint64(hash))
	}
	return xxhash.Sum64(o.bytes)
}

// shapes encodes the shapes of endpoints: runs of equal ones.
func (o *output) shapes(all []specifier.Shape, h *hider) {
	known := map[specifier.Shape]uint64{}
	for len(all) > 0 {
		shape, length := all[0], 1
		for length < len(all) && all[length] == shape {
			length++
		}
		all = all[length:]
		if known[shape] == 0 {
			known[shape] = h.number(uint64(shape))
		}
		o.uint(uint64(length))
		o.fixed(known[shape])
	}
	o.uint(0)
}

// shapes decodes the shapes of so many endpoints; nil if there are not as many.
func (in *input) shapes(endpoints int) []specifier.Shape {
	all, others := make([]specifier.Shape, 0, endpoints), false
	for length := in.size(most); length > 0 && in.err == nil; length = in.size(most) {
		shape := specifier.Shape(in.fixed())
		if others = others || length > endpoints-len(all); !others {
			all = append(all, slices.Repeat([]specifier.Shape{shape}, length)...)
		}
	}
	if others || len(all) != endpoints {
		return nil
	}
	return all
}

func (w *Writer) source(c *source.Cluster) {
	o := &w.out
	for _, text := range []string{c.Source, c.Name, c.ServiceName, c.AssignmentSource, c.Names, c.Rejected} {
		o.text(text)
	}
	for _, flag := range []bool{c.Lone, c.Stale, c.IgnoreNew} {
		o.bool(flag)
	}
	o.message(hidden(w.hide, c.Config))
	if o.bool(c.Assignment != nil); c.Assignment != nil {
		o.text(string(w.assignment(c.Assignment)))
	}
	own := slices.Equal(c.HealthChecks, c.Config.GetHealthChecks())
	if o.bool(own); !own {
		o.uint(uint64(len(c.HealthChecks)))
		for _, check := range c.HealthChecks {
			o.message(hidden(w.hide, check))
		}
	}
}

// assignment returns an encoded assignment without secrets.
func (w *Writer) assignment(a *source.Assignment) []byte {
	if m := a.Message(); redact.Replace(m, &w.hide.by) {
		a = source.EncodeAssignment(m)
	}
	return a.Wire()
}

// delivery decodes clusters, and prepares them.
func (r *Reader) delivery() (d catalog.Delivery) {
	in := &r.in
	if in.bool() {
		c := &configv1.Config{}
		in.message(c)
		r.rules = catalog.NewRules(c)
	}
	if r.rules == nil {
		in.fail(errFormat)
	}
	d.Rules, d.Answered = r.rules, map[string]bool{}
	for _, name := range in.texts() {
		d.Answered[name] = true
	}
	d.Complete, d.Removed = in.bool(), in.texts()
	for _, name := range d.Removed {
		delete(r.sources, name)
	}
	in.each(func() {
		if change := r.change(); change.Cluster != nil {
			d.Changed = append(d.Changed, change)
		}
	})
	return d
}

func (r *Reader) change() (change catalog.Change) {
	in := &r.in
	name := in.text()
	if in.bool() {
		r.sources[name] = in.source()
	}
	var latest *source.Cluster
	rejected := ""
	if in.bool() {
		latest, rejected = in.source(), in.text()
	}
	in.each(func() { change.Renewed = append(change.Renewed, in.bool()) })
	endpoints := in.fixed()
	if r.sources[name] == nil {
		in.fail(errFormat)
	}
	if in.err != nil {
		return change
	}
	var k *catalog.Cluster
	if attempt(func() { k = catalog.Prepare(r.sources[name], r.rules) }) != "" {
		in.fail(errFormat)
		return change
	}
	if latest != nil {
		k.Latest, k.Rejected = latest, rejected
	}
	change.Cluster = k
	shapes := in.shapes(len(k.Hashes))
	if shapes == nil || endpointsOf(k) != endpoints || change.Renewed != nil && len(change.Renewed) != len(k.Hashes) {
		r.differs = append(r.differs, name)
		change.Renewed = nil
		return change
	}
	if k.Shapes != nil {
		k.Shapes = shapes
	}
	return change
}

func (in *input) source() *source.Cluster {
	c := &source.Cluster{}
	for _, text := range []*string{&c.Source, &c.Name, &c.ServiceName, &c.AssignmentSource, &c.Names, &c.Rejected} {
		*text = in.text()
	}
	for _, flag := range []*bool{&c.Lone, &c.Stale, &c.IgnoreNew} {
		*flag = in.bool()
	}
	if config := new(clusterv3.Cluster); in.message(config) {
		c.Config = config
	}
	if in.bool() {
		wire := []byte(in.text())
		c.Assignment = source.EncodeAssignmentAs(wire, envoy.DecodeAssignment(wire))
	}
	if in.bool() {
		c.HealthChecks = c.Config.GetHealthChecks()
		return c
	}
	in.each(func() {
		check := &corev3.HealthCheck{}
		in.message(check)
		c.HealthChecks = append(c.HealthChecks, check)
	})
	return c
}
