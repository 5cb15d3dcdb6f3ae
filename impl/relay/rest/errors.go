package rest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

var statusKind = wire.Kind{APIVersion: "v1", Kind: "Status"}

// WriteError answers with a Status in the encoding that the client prefers.
func WriteError(w http.ResponseWriter, req *http.Request, err error) {
	s := relay.StatusOf(err)
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	media := mediaJSON
	var body []byte
	if a := ParseAccept(strings.Join(req.Header.Values("Accept"), ",")); len(a) > 0 && a[0].Media == mediaProtobuf &&
		a[0].Params["as"] == "" {
		raw, _ := s.Marshal()
		media, body = mediaProtobuf, wire.Envelope(statusKind, raw)
	} else {
		body, _ = json.Marshal(s)
		body = append(body, '\n')
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}
