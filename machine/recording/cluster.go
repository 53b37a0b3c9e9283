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

// delivery encodes a change of the clusters.
func (w *Writer) delivery(d *catalog.Delivery) error {
	o := &w.out
	if o.bool(d.Rules != w.rules); d.Rules != w.rules {
		w.rules = d.Rules
		o.message(redacted(w.hider, d.Rules.Config()))
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

// change encodes a prepared cluster: its source, and the shapes, which depend on secrets.
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
	o.fixed(endpointsDigest(k))
	o.shapes(k.Shapes, w.hider)
}

// endpointsDigest returns a digest of the checked endpoints in their order.
func endpointsDigest(k *catalog.Cluster) uint64 {
	var o output
	for _, hash := range k.Hashes {
		o.fixed(uint64(hash))
	}
	return xxhash.Sum64(o.bytes)
}

// shapes encodes the shapes of endpoints as runs of equal shapes.
func (o *output) shapes(shapes []specifier.Shape, h *hider) {
	known := map[specifier.Shape]uint64{}
	for len(shapes) > 0 {
		shape, length := shapes[0], 1
		for length < len(shapes) && shapes[length] == shape {
			length++
		}
		shapes = shapes[length:]
		if known[shape] == 0 {
			known[shape] = h.number(uint64(shape))
		}
		o.uint(uint64(length))
		o.fixed(known[shape])
	}
	o.uint(0)
}

// shapes decodes the shapes of a cluster with a number of endpoints; nil if the number is another.
func (in *input) shapes(endpoints int) []specifier.Shape {
	shapes, excess := make([]specifier.Shape, 0, endpoints), false
	for length := in.size(maxItems); length > 0 && in.err == nil; length = in.size(maxItems) {
		shape := specifier.Shape(in.fixed())
		if excess = excess || length > endpoints-len(shapes); !excess {
			shapes = append(shapes, slices.Repeat([]specifier.Shape{shape}, length)...)
		}
	}
	if excess || len(shapes) != endpoints {
		return nil
	}
	return shapes
}

// source encodes a cluster of a source without secrets.
func (w *Writer) source(c *source.Cluster) {
	o := &w.out
	for _, text := range []string{c.Source, c.Name, c.ServiceName, c.AssignmentSource, c.Names, c.Rejected} {
		o.text(text)
	}
	for _, flag := range []bool{c.Lone, c.Stale, c.IgnoreNew} {
		o.bool(flag)
	}
	o.message(redacted(w.hider, c.Config))
	if o.bool(c.Assignment != nil); c.Assignment != nil {
		o.text(string(w.assignment(c.Assignment)))
	}
	same := slices.Equal(c.HealthChecks, c.Config.GetHealthChecks())
	if o.bool(same); !same {
		o.uint(uint64(len(c.HealthChecks)))
		for _, check := range c.HealthChecks {
			o.message(redacted(w.hider, check))
		}
	}
}

// assignment returns an encoded assignment without secrets.
func (w *Writer) assignment(a *source.Assignment) []byte {
	if m := a.Message(); redact.Replace(m, &w.hider.replacement) {
		a = source.EncodeAssignment(m)
	}
	return a.Wire()
}

// delivery decodes a change of the clusters, and prepares the clusters.
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

// change decodes a cluster, and prepares it.
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
	digest := in.fixed()
	if r.sources[name] == nil {
		in.fail(errFormat)
	}
	if in.err != nil {
		return change
	}
	var k *catalog.Cluster
	if catchPanic(func() { k = catalog.Prepare(r.sources[name], r.rules) }) != "" {
		in.fail(errFormat)
		return change
	}
	if latest != nil {
		k.Latest, k.Rejected = latest, rejected
	}
	change.Cluster = k
	shapes := in.shapes(len(k.Hashes))
	if shapes == nil || endpointsDigest(k) != digest || change.Renewed != nil && len(change.Renewed) != len(k.Hashes) {
		r.differing = append(r.differing, name)
		change.Renewed = nil
		return change
	}
	if k.Shapes != nil {
		k.Shapes = shapes
	}
	return change
}

// source decodes a cluster of a source.
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
