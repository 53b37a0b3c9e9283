package main

import (
	"bytes"
	"encoding/json"
	"slices"

	"go.yaml.in/yaml/v3"
)

// object is a JSON object that keeps the order of its members.
type object struct {
	keys   []string
	values map[string]any
}

// members makes an object of keys and values, one after the other.
func members(pairs ...any) *object {
	o := &object{values: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// remove removes a member.
func (o *object) remove(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(has string) bool { return has == key })
}

// child gives the object that is a member, made where there is none.
func (o *object) child(key string) *object {
	if c, ok := o.values[key].(*object); ok {
		return c
	}
	c := members()
	o.set(key, c)
	return c
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, part := range []any{key, o.values[key]} {
			if j > 0 {
				b.WriteByte(':')
			}
			text, err := plainJSON(part)
			if err != nil {
				return nil, err
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON leaves <, > and & as they are: the document is not inside HTML.
func plainJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}

// encode gives the object as JSON without white space, which takes half of the bytes of a program, and as YAML.
func (o *object) encode() (asJSON, asYAML []byte, err error) {
	compact, err := plainJSON(o)
	if err != nil {
		return nil, nil, err
	}
	var node yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(compact, &node); err != nil {
		return nil, nil, err
	}
	asBlocks(&node)
	var y bytes.Buffer
	encoder := yaml.NewEncoder(&y)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return nil, nil, err
	}
	return append(compact, '\n'), y.Bytes(), encoder.Close()
}

// asBlocks takes the style of JSON away.
func asBlocks(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		asBlocks(child)
	}
}

// fromYAML gives what a node says, objects in their order.
func fromYAML(n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return fromYAML(n.Alias)
	case yaml.MappingNode:
		o := members()
		for i := 0; i < len(n.Content); i += 2 {
			value := fromYAML(n.Content[i+1])
			if merged, ok := value.(*object); ok && n.Content[i].Value == "<<" {
				for _, key := range merged.keys {
					o.set(key, merged.values[key])
				}
				continue
			}
			o.set(n.Content[i].Value, value)
		}
		return o
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = fromYAML(item)
		}
		return list
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return n.Value
	}
	return value
}
