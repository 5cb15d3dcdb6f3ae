package lead

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/relay"
)

// Serve takes what the hub of a node says at contract.DoubtPath.
func (j *Jury) Serve(w http.ResponseWriter, req *http.Request, node string) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	var d contract.Doubt
	raw, err := io.ReadAll(io.LimitReader(req.Body, limit.MaxDoubt+1))
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	switch {
	case len(raw) > limit.MaxDoubt:
		err = fmt.Errorf("more than %d bytes", limit.MaxDoubt)
	case err == nil:
		err = j.check(d)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := j.Hear(req.Context(), node, d); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (j *Jury) check(d contract.Doubt) error {
	isName := func(s string) bool { return s == "" || len(validation.IsDNS1123Subdomain(s)) == 0 }
	switch {
	case d.Leader == "" || !isName(d.Leader):
		return fmt.Errorf("leader %q: want the name of a node", d.Leader)
	case !slices.ContainsFunc(j.Relays(), func(r *relay.Relay) bool { return r.Resource().String() == d.Resource }):
		return fmt.Errorf("resource %q: want one that this coordinator relays", d.Resource)
	case !isName(d.Namespace):
		return fmt.Errorf("namespace %q: want a name or nothing", d.Namespace)
	case len(d.Name) > validation.DNS1123SubdomainMaxLength: // the rules for names are the resource's own
		return fmt.Errorf("name %.20q…: want %d bytes at most", d.Name, validation.DNS1123SubdomainMaxLength)
	}
	return nil
}
