package offline

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// encodingOf tells how the body of an answer is written. ok is false if it is in no form that is kept: CBOR, YAML,
// text.
func encodingOf(h http.Header) (enc wire.Encoding, ok bool) {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.TrimSpace(media) {
	case mediaJSON:
		return wire.JSON, true
	case mediaProtobuf:
		return wire.Protobuf, true
	}
	return 0, false
}

// plain gives the body of an answer without its compression.
func plain(h http.Header, body io.Reader) (io.Reader, error) {
	switch coding := h.Get("Content-Encoding"); coding {
	case "", "identity":
		return body, nil
	case "gzip":
		return gzip.NewReader(body)
	default:
		return nil, fmt.Errorf("it is compressed by %s", coding)
	}
}

var partial = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}

// formOf is how objects of a kind are kept. ok is false for what is no object of the resource that was asked for.
func formOf(enc wire.Encoding, kind wire.Kind) (f store.Form, ok bool) {
	f = store.Protobuf
	if enc == wire.JSON {
		f = store.JSON
	}
	switch {
	case kind == partial:
		return f + store.ProtobufMetadata, true
	case strings.HasPrefix(kind.APIVersion, "meta.k8s.io/"), kind.Kind == "", kind.Kind == "Status" &&
		kind.APIVersion == "v1":
		return 0, false
	}
	return f, true
}

// wanted is the form that a client would like best. The store gives the other encoding if it has only that.
func wanted(h http.Header) store.Form {
	for _, c := range clauses(h) {
		var f store.Form
		switch c.Media {
		case mediaProtobuf:
			f = store.Protobuf
		case mediaJSON, "*/*", "application/*":
			f = store.JSON
		default:
			continue
		}
		if strings.HasPrefix(c.Params["as"], partial.Kind) {
			f += store.ProtobufMetadata
		}
		return f
	}
	return store.JSON
}

// streamForm is the form of a watch stream in an encoding, as far as its request tells: the objects will.
func streamForm(h http.Header, enc wire.Encoding) (f store.Form, ok bool) {
	for _, c := range clauses(h) {
		if c.Media != mediaOf(enc) && !strings.HasSuffix(c.Media, "/*") {
			continue
		}
		kind := wire.Kind{APIVersion: "v1", Kind: "any"}
		if as := c.Params["as"]; as != "" {
			kind = wire.Kind{APIVersion: c.Params["g"] + "/" + c.Params["v"], Kind: as}
		}
		return formOf(enc, kind)
	}
	return formOf(enc, wire.Kind{APIVersion: "v1", Kind: "any"})
}

func mediaOf(enc wire.Encoding) string {
	if enc == wire.JSON {
		return mediaJSON
	}
	return mediaProtobuf
}

func clauses(h http.Header) []rest.Clause {
	return rest.ParseAccept(strings.Join(h.Values("Accept"), ","))
}
