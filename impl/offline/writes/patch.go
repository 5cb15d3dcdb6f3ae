package writes

import (
	"fmt"
	"mime"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// apply gives what an object becomes by a patch, as kube-apiserver would apply it.
func apply(k kind, object []byte, contentType string, patch []byte) ([]byte, *apierrors.StatusError) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, apierrors.NewBadRequest("content type " + contentType + ": " + err.Error())
	}
	var out []byte
	switch types.PatchType(media) {
	case types.StrategicMergePatchType:
		out, err = strategicpatch.StrategicMergePatch(object, patch, k.new())
	case types.MergePatchType:
		out, err = jsonpatch.MergePatch(object, patch)
	default:
		return nil, unsupported(contentType)
	}
	if err != nil && strings.Contains(err.Error(), "unable to find api field") {
		return nil,
			unavailable(fmt.Sprintf("this hub is older than its client, and cannot apply the patch of a %s: %v", k.Kind.Kind,
				err))
	}
	if err == nil { // values of the wrong type would stop the queue later
		_, err = k.toProtobuf(out)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patch of a %s cannot be applied: %v", k.Kind.Kind, err))
	}
	return out, nil
}
