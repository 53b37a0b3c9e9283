package link

import (
	"runtime"
	"sync"
	"weak"

	"google.golang.org/protobuf/proto"
)

// pool has the messages of a type that are in use, by their bytes.
type pool[M any, P interface {
	*M
	proto.Message
}] struct {
	mu       sync.Mutex // guards messages
	messages map[string]weak.Pointer[M]
}

// get returns the message with some bytes. It must not be changed.
func (p *pool[M, P]) get(encoded []byte) (*M, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if message := p.messages[string(encoded)].Value(); message != nil {
		return message, nil
	}
	message := new(M)
	if err := proto.Unmarshal(encoded, P(message)); err != nil {
		return nil, err
	}
	if p.messages == nil {
		p.messages = map[string]weak.Pointer[M]{}
	}
	key := string(encoded)
	p.messages[key] = weak.Make(message)
	runtime.AddCleanup(message, p.forget, key)
	return message, nil
}

// forget removes a message that is no longer in use, unless there is a new one with its bytes.
func (p *pool[M, P]) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if message, ok := p.messages[key]; ok && message.Value() == nil {
		delete(p.messages, key)
	}
}
