package charts

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
)

// Paths of the templates that are made, in this folder.
const (
	crds     = "weir/templates/crds.yaml"
	policies = "weir/templates/policies.yaml"
	rbac     = "weir/templates/rbac.yaml"
	manager  = "weir/templates/manager.yaml"
	access   = "weir/templates/gate-access.yaml"
)

const made = "{{- /* Made by `make generate` of what weir-manager --print-manifests prints. */ -}}\n"

// object is what is looked at to know where a manifest belongs.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
	} `json:"spec"`
}

// Templates returns the text of each template that is made, by its path in this folder. gate has the grants of
// weir-gate, which weir-manager does not print, and pods those that it needs besides where it serves pods.
func Templates(manifests, gate, pods string) (map[string]string, error) {
	out := map[string]*strings.Builder{}
	for _, path := range []string{crds, policies, rbac, manager} {
		out[path] = &strings.Builder{}
		out[path].WriteString(made)
	}
	for doc := range strings.SplitSeq("\n"+manifests, "\n---\n") {
		doc = strings.TrimPrefix(strings.Trim(doc, "\n"), "---\n")
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		path := rbac
		var text string
		var err error
		switch o.Kind {
		case "":
			continue
		case "CustomResourceDefinition":
			path = crds
			text, err = definition(o, escape(doc))
		case "Deployment":
			path = manager
			text, err = deployment(doc)
		case "ConfigMap":
			path, text = policies, escape(doc)
			switch o.Metadata.Name {
			case contract.InstallerImages:
				text += installer
			case contract.CoordinatorImages:
				text += coordinator
			}
		case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
			"MutatingAdmissionPolicyBinding":
			path, text = policies, escape(doc)
		default:
			text = escape(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
		}
		out[path].WriteString("---\n" + text + "\n")
	}
	texts := map[string]string{}
	for path, b := range out {
		if b.Len() == len(made) {
			return nil, fmt.Errorf("the manifests have nothing for %s", path)
		}
		texts[path] = b.String()
	}
	if strings.TrimSpace(gate) == "" || strings.TrimSpace(pods) == "" {
		return nil, fmt.Errorf("the manifests have nothing for %s", access)
	}
	texts[access] = "{{- /* Made by `make generate` of gate.yaml and gate-pods.yaml in impl/manager/manifests. */ -}}\n" +
		"{{- if (.Values.gate).enabled }}\n---\n" + escape(strings.TrimSpace(gate)) +
		"\n{{- if ((.Values.gate).pods).enabled }}\n---\n" + escape(strings.TrimSpace(pods)) + "\n{{- end }}\n{{- end }}\n"
	return texts, nil
}

// escape lets text pass a template as it is.
func escape(text string) string {
	return strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
}

// installer is the image by which nodes are joined, where the values say so.
const installer = `
{{- if .Values.installer.enabled }}
data:
  ` + contract.InstallerImagesKey + `: {{ include "weir.image" (list . .Values.installer.image) | quote }}` +
	pullSecrets + `
{{- end }}`

// coordinator is the image that counts for Pools that name none. It is no line of those that others name: a Pool keeps
// its own through upgrades.
const coordinator = `
data:
  ` + contract.CoordinatorImagesRelease + `: {{ include "weir.image" (list . .Values.coordinator.image) | quote }}` +
	pullSecrets

// pullSecrets are the names of those by which the images of a list are pulled.
const pullSecrets = `
{{- if .Values.imagePullSecrets }}
  ` + contract.PullSecretsKey + `: {{ include "weir.pullSecrets" . | quote }}
{{- end }}`

// foreign is the API group of OpenYurt. Where OpenYurt is, its definitions are its own.
const foreign = "apps.openyurt.io"

// definition is a CRD that stays when the release goes, with all objects of it.
func definition(o object, doc string) (string, error) {
	const head = "\nmetadata:\n  annotations:\n"
	if strings.Count(doc, head) != 1 {
		return "", errors.New("metadata.annotations are not where controller-gen writes them")
	}
	doc = strings.Replace(doc, head,
		head+"    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n", 1)
	condition := ".Values.crds.enabled"
	if o.Spec.Group == foreign {
		condition = fmt.Sprintf(`include "weir.ownsDefinition" (list . %q)`, o.Metadata.Name)
	}
	return "{{- if " + condition + " }}\n" + doc + "\n{{- end }}", nil
}
