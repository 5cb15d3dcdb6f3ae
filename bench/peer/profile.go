package peer

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/cli"
)

// Bounds of a profile.
const (
	maxFile     = 64 << 10
	maxManifest = 1 << 20
	maxAbout    = 500
	maxText     = 4096 // of one value with placeholders
	maxArgs     = 100
	maxEnv      = 50
	maxFiles    = 20
	maxGroups   = 10
	minReady    = time.Second
	maxReady    = 10 * time.Minute
	usualReady  = time.Minute
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Profile says how a peer is run on a node. All strings but Name, About, Binary and Objects may have placeholders, see
// Machine.
type Profile struct {
	// Name is what reports call the peer: a DNS label.
	Name string `json:"name"`
	// About is what a reader of the report has to know of the peer: its version, what is left out.
	About string `json:"about,omitempty"`
	// Binary is a name that is looked up in PATH, an absolute path, or a path from the folder of the profile that begins
	// with ./ or ../.
	Binary string            `json:"binary"`
	Args   []string          `json:"args,omitempty"`
	Env    map[string]string `json:"env,omitempty"` // beside the environment of the benchmark
	// Files are written before the start, below Machine.Data.
	Files []File `json:"files,omitempty"`
	// Objects are files of manifests beside the profile that kubectl applies at the cloud, once, before the start; with
	// placeholders of the first node.
	Objects []string `json:"objects,omitempty"`
	// Identity is whose client certificate Machine.Cert is. Default: the node's, as its kubelet has it.
	Identity Identity `json:"identity,omitzero"`
	// Serve is the URL where clients of the node find the Kubernetes API.
	Serve string `json:"serve"`
	// Trust is the file of the authority that signed the certificate there. Default: Machine.CA, which signed
	// Machine.ServingCert.
	Trust string `json:"trust,omitempty"`
	// Health is the URL that answers 200 once the peer is ready.
	Health string `json:"health"`
	// Ready is how long that may take: 1s to 10m, 1m by default.
	Ready metav1.Duration `json:"ready,omitzero"`

	path, binary string
	manifests    []string
}

// File is one that the peer finds at its start.
type File struct {
	Path string `json:"path"` // below Machine.Data
	Text string `json:"text"`
}

// Identity is a user of the cloud.
type Identity struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Load reads a profile. The error is a cli.UsageError that names the field, the value and what is allowed.
func Load(path string) (*Profile, error) {
	data, err := readBounded(path, maxFile)
	if err != nil {
		return nil, cli.Usage("--peer", path, "a profile of another hub: "+err.Error())
	}
	p := &Profile{path: path}
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		why := strings.Join(strings.Fields(err.Error()), " ")
		// the reader wrote YAML.
		for _, step := range []string{
			"error unmarshaling JSON: ", "error converting YAML to JSON: ", "while decoding JSON: ",
		} {
			why = strings.TrimPrefix(why, step)
		}
		return nil,
			cli.Usage("--peer", path, "a profile in YAML with the fields "+strings.Join(fields(), ", ")+" (docs/peers.md): "+why)
	}
	if p.Ready.Duration == 0 {
		p.Ready.Duration = usualReady
	}
	if p.Identity.User == "" && len(p.Identity.Groups) == 0 {
		p.Identity = Identity{User: "system:node:{{.Node}}", Groups: []string{"system:nodes"}}
	}
	if p.Trust == "" {
		p.Trust = "{{.CA}}"
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// fields are those of a profile, as YAML has them.
func fields() (names []string) {
	for f := range reflect.TypeFor[Profile]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Path is the file of the profile.
func (p *Profile) Path() string { return p.path }

// Needs reports whether the tool is needed that applies the profile's objects.
func (p *Profile) Needs() []string {
	if len(p.manifests) == 0 {
		return nil
	}
	return []string{"kubectl"}
}

func (p *Profile) wrong(field string, value any, allowed string) error {
	return cli.Usage(p.path+": "+field, value, allowed)
}

func (p *Profile) validate() error {
	if len(validation.IsDNS1123Label(p.Name)) > 0 {
		return p.wrong("name", p.Name, "a name for reports of lower case letters, digits and -, 63 at most")
	}
	if slices.Contains([]string{direct, hub, reference}, p.Name) {
		return p.wrong("name", p.Name, "another name: the report has a column that is called so")
	}
	for _, c := range []struct {
		field   string
		n, most int
	}{
		{"about", len(p.About), maxAbout}, {"args", len(p.Args), maxArgs}, {"env", len(p.Env), maxEnv},
		{"files", len(p.Files), maxFiles},
		{"objects", len(p.Objects), maxFiles}, {"identity.groups", len(p.Identity.Groups), maxGroups},
	} {
		if c.n > c.most {
			return p.wrong(c.field, fmt.Sprintf("%d long", c.n), fmt.Sprintf("at most %d", c.most))
		}
	}
	if p.Ready.Duration < minReady || p.Ready.Duration > maxReady {
		return p.wrong("ready", p.Ready.Duration, fmt.Sprintf("%v to %v", minReady, maxReady))
	}
	if p.Identity.User == "" {
		return p.wrong("identity.user", "", "the name of a user")
	}
	if err := p.texts(); err != nil {
		return err
	}
	if err := p.findBinary(); err != nil {
		return err
	}
	return p.readManifests()
}

// Columns of a report that a peer must not be called.
const (
	direct    = "direct"
	hub       = "hub"
	reference = "reference"
)

// texts tries all placeholders with values that a machine may have.
func (p *Profile) texts() error {
	fill := func(field, text string) (string, error) {
		if len(text) > maxText {
			return "", p.wrong(field, fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d", maxText))
		}
		filled, err := example.fill(text)
		if err != nil {
			return "",
				p.wrong(field, text, fmt.Sprintf("text with placeholders of %s: %v", strings.Join(placeholders(), " "), err))
		}
		return filled, nil
	}
	for i, a := range p.Args {
		if _, err := fill(fmt.Sprintf("args[%d]", i), a); err != nil {
			return err
		}
	}
	for name, value := range p.Env {
		if !variable.MatchString(name) {
			return p.wrong("env", name, "names of letters, digits and _")
		}
		if _, err := fill("env."+name, value); err != nil {
			return err
		}
	}
	for i, f := range p.Files {
		path, err := fill(fmt.Sprintf("files[%d].path", i), f.Path)
		if err != nil {
			return err
		}
		if !filepath.IsLocal(path) {
			return p.wrong(fmt.Sprintf("files[%d].path", i), f.Path, "a path below {{.Data}}")
		}
		if _, err := fill(fmt.Sprintf("files[%d].text", i), f.Text); err != nil {
			return err
		}
	}
	for i, g := range append([]string{p.Identity.User}, p.Identity.Groups...) {
		if text, err := fill(fmt.Sprintf("identity[%d]", i), g); err != nil || text == "" {
			return orWrong(err, p.wrong(fmt.Sprintf("identity[%d]", i), g, "the name of a user or a group"))
		}
	}
	if text, err := fill("trust", p.Trust); err != nil || !filepath.IsAbs(text) {
		return orWrong(err, p.wrong("trust", p.Trust, "an absolute path, as {{.CA}} and what begins with {{.Data}}"))
	}
	for field, text := range map[string]string{"serve": p.Serve, "health": p.Health} {
		filled, err := fill(field, text)
		if err != nil {
			return err
		}
		if u, err := url.Parse(filled); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return p.wrong(field, text, "a URL of http or https, as https://{{.Address}}:{{.Port}}")
		}
	}
	return nil
}

func orWrong(err, wrong error) error {
	if err != nil {
		return err
	}
	return wrong
}

func (p *Profile) findBinary() (err error) {
	if p.binary, err = lookPath(p.Binary, filepath.Dir(p.path)); err != nil {
		return p.wrong("binary", p.Binary,
			fmt.Sprintf("a program that is in PATH, or a path that is absolute or begins with ./ or ../: %v", err))
	}
	return nil
}

func (p *Profile) readManifests() error {
	for i, o := range p.Objects {
		field := fmt.Sprintf("objects[%d]", i)
		if !filepath.IsLocal(o) {
			return p.wrong(field, o, "a file beside the profile")
		}
		data, err := readBounded(filepath.Join(filepath.Dir(p.path), o), maxManifest)
		if err != nil {
			return p.wrong(field, o, "a file of manifests beside the profile: "+err.Error())
		}
		if _, err := example.fill(string(data)); err != nil {
			return p.wrong(field, o, fmt.Sprintf("manifests with placeholders of %s: %v", strings.Join(placeholders(), " "),
				err))
		}
		p.manifests = append(p.manifests, string(data))
	}
	return nil
}

// readBounded reads a file that is not larger than most.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > most:
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, most)
	}
	return os.ReadFile(path)
}
