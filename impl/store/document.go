package store

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/store/table"
)

const maxDocument = 8 << 20

// Document is an answer that is about no object: discovery, OpenAPI, /version.
type Document struct {
	ContentType, ETag string
	Body              []byte
	At                time.Time // when the cloud gave it
}

// PutDocument keeps a document under a name, which should be the path and what makes answers to it differ.
func (s *Store) PutDocument(name string, d Document) error {
	if name == "" || len(name) > maxKey || len(d.Body) > maxDocument {
		return fmt.Errorf("store: a document of %d bytes with a name of %d: at most %d and %d", len(d.Body), len(name),
			maxDocument, maxKey)
	}
	b := binary.AppendVarint(nil, d.At.Unix())
	b = disk.PackBytes(b, d.ContentType)
	b = disk.PackBytes(b, d.ETag)
	b = append(b, d.Body...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.document(name); ok && old.ContentType == d.ContentType && old.ETag == d.ETag &&
		string(old.Body) == string(d.Body) {
		return nil
	}
	s.put(table.Documents, name, b)
	s.urgent = true
	s.bound()
	return nil
}

// Document gives a document that was kept.
func (s *Store) Document(name string) (Document, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.document(name)
}

func (s *Store) document(name string) (d Document, ok bool) {
	b, ok := s.get(table.Documents, name)
	if !ok {
		return d, false
	}
	d, err := parseDocument(b)
	if err != nil {
		s.damaged(table.Documents, name, err.Error())
		return d, false
	}
	return d, true
}

func parseDocument(b []byte) (d Document, err error) {
	p := disk.NewUnpacker(b)
	d.At = time.Unix(p.Varint(), 0)
	d.ContentType, d.ETag, d.Body = string(p.Bytes()), string(p.Bytes()), p.Rest()
	return d, p.Err()
}
