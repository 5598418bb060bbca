package metadata

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// service answers by path, and for some only who brings a header.
type service struct {
	answers map[string]string // "PUT /path" or "/path"
	needs   [2]string         // a header and its value, "" for none
	free    string            // needs none
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.Method != http.MethodGet {
		path = r.Method + " " + path
	}
	text, ok := s.answers[path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case s.needs[0] != "" && path != s.free && r.Header.Get(s.needs[0]) != s.needs[1]:
		http.Error(w, "who asks?", http.StatusForbidden)
	default:
		fmt.Fprint(w, text)
	}
}

func openstackService() *service {
	return &service{answers: map[string]string{
		"/openstack/latest/meta_data.json": `{"uuid":"83679162-1378-4288-a2d4-70e13ec132aa","name":"Worker-1","hostname":"worker-1.novalocal","availability_zone":"nova","meta":{"x":"y"}}`,
		"/latest/meta-data/instance-type":  "m1.small\n",
	}}
}

func ec2Service() *service {
	return &service{needs: [2]string{"X-aws-ec2-metadata-token", "t0ken"}, free: "PUT /latest/api/token", answers: map[string]string{
		"PUT /latest/api/token":                      "t0ken",
		"/latest/dynamic/instance-identity/document": `{"instanceId":"i-0abc","instanceType":"t3.micro","availabilityZone":"eu-west-1b","region":"eu-west-1"}`,
		"/latest/meta-data/local-hostname":           "ip-10-0-0-1.eu-west-1.compute.internal other.internal",
	}}
}

func gceService() *service {
	return &service{needs: [2]string{"Metadata-Flavor", "Google"}, answers: map[string]string{
		"/computeMetadata/v1/project/project-id":    "my-project",
		"/computeMetadata/v1/instance/name":         "gke-1",
		"/computeMetadata/v1/instance/zone":         "projects/12345/zones/us-central1-a",
		"/computeMetadata/v1/instance/machine-type": "projects/12345/machineTypes/e2-small",
	}}
}

func ask(t *testing.T, cloud string, h http.Handler) (Machine, error) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	return Fetch(t.Context(), cloud, s.URL)
}

func TestAsk(t *testing.T) {
	bare := openstackService()
	delete(bare.answers, "/latest/meta-data/instance-type")
	for name, tt := range map[string]struct {
		cloud string
		from  *service
		want  Machine
	}{
		"openstack":                {"openstack", openstackService(), Machine{"worker-1", "openstack:///83679162-1378-4288-a2d4-70e13ec132aa", "nova", "", "m1.small"}},
		"openstack without a type": {"openstack", bare, Machine{"worker-1", "openstack:///83679162-1378-4288-a2d4-70e13ec132aa", "nova", "", ""}},
		"ec2":                      {"ec2", ec2Service(), Machine{"ip-10-0-0-1.eu-west-1.compute.internal", "aws:///eu-west-1b/i-0abc", "eu-west-1b", "eu-west-1", "t3.micro"}},
		"gce":                      {"gce", gceService(), Machine{"gke-1", "gce://my-project/us-central1-a/gke-1", "us-central1-a", "us-central1", "e2-small"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, tt.cloud, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	labels := map[string]string{"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "b", "node.kubernetes.io/instance-type": "c"}
	if diff := cmp.Diff(labels, Machine{Zone: "a", Region: "b", Type: "c"}.Labels()); diff != "" {
		t.Error(diff)
	}
}

// TestHostile: what is no answer of such a service is none.
func TestHostile(t *testing.T) {
	with := func(s *service, path, text string) *service { s.answers[path] = text; return s }
	const meta, name, zone = "/openstack/latest/meta_data.json", "/computeMetadata/v1/instance/name", "/computeMetadata/v1/instance/zone"
	for what, tt := range map[string]struct {
		cloud string
		from  http.Handler
		want  string
	}{
		"a name with a slash":  {"openstack", with(openstackService(), meta, `{"uuid":"1","name":"../etc","availability_zone":"nova"}`), "its name is"},
		"no name":              {"openstack", with(openstackService(), meta, `{"uuid":"1","availability_zone":"nova"}`), "its name is"},
		"no id":                {"openstack", with(openstackService(), meta, `{"name":"a","availability_zone":"nova"}`), "no provider id"},
		"an id with a line":    {"openstack", with(openstackService(), meta, `{"uuid":"a\nb","name":"a","availability_zone":"nova"}`), "no provider id"},
		"no zone":              {"openstack", with(openstackService(), meta, `{"uuid":"1","name":"a"}`), "no zone"},
		"a zone of two words":  {"openstack", with(openstackService(), meta, `{"uuid":"1","name":"a","availability_zone":"a b"}`), "topology.kubernetes.io/zone is"},
		"a type of two lines":  {"openstack", with(openstackService(), "/latest/meta-data/instance-type", "a\nb"), "instance-type is"},
		"no JSON":              {"openstack", with(openstackService(), meta, "<html>"), "invalid character"},
		"too much":             {"openstack", with(openstackService(), meta, strings.Repeat(" ", maxResponse)+"{}"), "more than 256 KiB"},
		"a page of a gateway":  {"gce", with(gceService(), name, "<html>no</html>"), "its name is"},
		"a zone without value": {"gce", with(gceService(), zone, "projects/1/zones/"), "no zone"},
		"somewhere else":       {"gce", http.RedirectHandler("http://example.invalid/", http.StatusFound), "status 302"},
		"nothing of the kind":  {"ec2", http.NotFoundHandler(), "404 Not Found"},
		"another cloud":        {"azure", http.NotFoundHandler(), "it is not known"},
	} {
		t.Run(what, func(t *testing.T) {
			if got, err := ask(t, tt.cloud, tt.from); err == nil || !strings.Contains(err.Error(), tt.want) || got != (Machine{}) {
				t.Errorf("%+v, %v; want an error with %q", got, err, tt.want)
			}
		})
	}
}
