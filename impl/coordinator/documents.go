package coordinator

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/documents"
)

// sharedDocuments serves the pool's copies of API discovery at contract.DocumentsPath. Only the leader writes them, under
// the same terms as a feed.
type sharedDocuments struct {
	store documents.Store
	feeds *feeds
}

// ServeHTTP implements http.Handler.
func (d *sharedDocuments) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodPut {
		if err := d.admit(req); err != nil {
			d.feeds.fail(w, req, apierrors.NewGenericServerResponse(http.StatusConflict, "put", schema.GroupResource{Resource: "documents"}, "", err.Error(), 0, true))
			return
		}
	}
	d.store.ServeHTTP(w, req)
}

func (d *sharedDocuments) admit(req *http.Request) error {
	term, err := contract.ParseTerm(req.Header.Get(contract.TermHeader))
	if err != nil {
		return fmt.Errorf("header %s: %w", contract.TermHeader, err)
	}
	if err := d.feeds.look(req.Context()); err != nil {
		return err
	}
	u, _ := genericrequest.UserFrom(req.Context())
	return d.feeds.fence.Open(term, authz.NodeOf(u))
}
