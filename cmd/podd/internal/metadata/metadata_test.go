package metadata

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// A service is a fake metadata service.
type service struct {
	responses map[string]string // by path for GET, and by method and path for other methods, such as "PUT /path"
	header    [2]string         // name and value of a header that requests must contain; zero if none
	exempt    string            // key in responses of the request that needs no header
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.Method != http.MethodGet {
		path = r.Method + " " + path
	}
	text, ok := s.responses[path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case s.header[0] != "" && path != s.exempt && r.Header.Get(s.header[0]) != s.header[1]:
		http.Error(w, "header missing", http.StatusForbidden)
	default:
		fmt.Fprint(w, text)
	}
}

func newOpenStackService() *service {
	return &service{responses: map[string]string{
		"/openstack/latest/meta_data.json": `{"uuid":"83679162-1378-4288-a2d4-70e13ec132aa","name":"Worker-1","hostname":"worker-1.novalocal","availability_zone":"nova","meta":{"x":"y"}}`,
		"/latest/meta-data/instance-type":  "m1.small\n",
	}}
}

func newEC2Service() *service {
	return &service{header: [2]string{"X-aws-ec2-metadata-token", "t0ken"}, exempt: "PUT /latest/api/token", responses: map[string]string{
		"PUT /latest/api/token":                      "t0ken",
		"/latest/dynamic/instance-identity/document": `{"instanceId":"i-0abc","instanceType":"t3.micro","availabilityZone":"eu-west-1b","region":"eu-west-1"}`,
		"/latest/meta-data/local-hostname":           "ip-10-0-0-1.eu-west-1.compute.internal other.internal",
	}}
}

func newGCEService() *service {
	return &service{header: [2]string{"Metadata-Flavor", "Google"}, responses: map[string]string{
		"/computeMetadata/v1/project/project-id":    "my-project",
		"/computeMetadata/v1/instance/name":         "gke-1",
		"/computeMetadata/v1/instance/zone":         "projects/12345/zones/us-central1-a",
		"/computeMetadata/v1/instance/machine-type": "projects/12345/machineTypes/e2-small",
	}}
}

// fetch calls Fetch with the URL of a server for h. The timeout of a request cannot expire on a busy
// machine, because the clock of synctest stands still while the server waits for connections.
func fetch(t *testing.T, cloud string, h http.Handler) (got Instance, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := httptest.NewServer(h)
		defer s.Close()
		got, err = Fetch(t.Context(), cloud, s.URL)
	})
	return got, err
}

// TestFetch checks the metadata of an instance in each supported cloud, and the labels of an instance.
func TestFetch(t *testing.T) {
	untyped := newOpenStackService()
	delete(untyped.responses, "/latest/meta-data/instance-type")
	for name, tt := range map[string]struct {
		cloud   string
		service *service
		want    Instance
	}{
		"openstack":                {"openstack", newOpenStackService(), Instance{"worker-1", "openstack:///83679162-1378-4288-a2d4-70e13ec132aa", "nova", "", "m1.small"}},
		"openstack without a type": {"openstack", untyped, Instance{"worker-1", "openstack:///83679162-1378-4288-a2d4-70e13ec132aa", "nova", "", ""}},
		"ec2":                      {"ec2", newEC2Service(), Instance{"ip-10-0-0-1.eu-west-1.compute.internal", "aws:///eu-west-1b/i-0abc", "eu-west-1b", "eu-west-1", "t3.micro"}},
		"gce":                      {"gce", newGCEService(), Instance{"gke-1", "gce://my-project/us-central1-a/gke-1", "us-central1-a", "us-central1", "e2-small"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetch(t, tt.cloud, tt.service)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("instance (-want +got):\n%s", diff)
			}
		})
	}
	labels := map[string]string{"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "b", "node.kubernetes.io/instance-type": "c"}
	if diff := cmp.Diff(labels, Instance{Zone: "a", Region: "b", Type: "c"}.Labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestFetch_Invalid checks the error for missing or invalid metadata, and for responses that contain no
// metadata.
func TestFetch_Invalid(t *testing.T) {
	with := func(s *service, path, text string) *service { s.responses[path] = text; return s }
	const meta, gceName, gceZone = "/openstack/latest/meta_data.json", "/computeMetadata/v1/instance/name", "/computeMetadata/v1/instance/zone"
	for name, tt := range map[string]struct {
		cloud   string
		service http.Handler
		want    string
	}{
		"name with a slash":    {"openstack", with(newOpenStackService(), meta, `{"uuid":"1","name":"../etc","availability_zone":"nova"}`), "invalid instance name"},
		"no name":              {"openstack", with(newOpenStackService(), meta, `{"uuid":"1","availability_zone":"nova"}`), "invalid instance name"},
		"no ID":                {"openstack", with(newOpenStackService(), meta, `{"name":"a","availability_zone":"nova"}`), "invalid provider ID"},
		"ID with a newline":    {"openstack", with(newOpenStackService(), meta, `{"uuid":"a\nb","name":"a","availability_zone":"nova"}`), "invalid provider ID"},
		"no zone":              {"openstack", with(newOpenStackService(), meta, `{"uuid":"1","name":"a"}`), "the zone is missing"},
		"zone with a space":    {"openstack", with(newOpenStackService(), meta, `{"uuid":"1","name":"a","availability_zone":"a b"}`), "label topology.kubernetes.io/zone"},
		"type with a newline":  {"openstack", with(newOpenStackService(), "/latest/meta-data/instance-type", "a\nb"), "of label node.kubernetes.io/instance-type"},
		"not JSON":             {"openstack", with(newOpenStackService(), meta, "<html>"), "invalid character"},
		"too large":            {"openstack", with(newOpenStackService(), meta, strings.Repeat(" ", maxResponse)+"{}"), "larger than 256 KiB"},
		"HTML page of a proxy": {"gce", with(newGCEService(), gceName, "<html>no</html>"), "invalid instance name"},
		"empty zone":           {"gce", with(newGCEService(), gceZone, "projects/1/zones/"), "the zone is missing"},
		"redirect":             {"gce", http.RedirectHandler("http://example.invalid/", http.StatusFound), "status 302"},
		"redirect of PUT":      {"ec2", http.RedirectHandler("http://example.invalid/", http.StatusFound), "PUT /latest/api/token: got status 302"},
		"not found":            {"ec2", http.NotFoundHandler(), "404 Not Found"},
		"unsupported cloud":    {"azure", http.NotFoundHandler(), "unsupported cloud"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := fetch(t, tt.cloud, tt.service); err == nil || !strings.Contains(err.Error(), tt.want) || got != (Instance{}) {
				t.Errorf("got instance %+v, error %v; want no instance and an error that contains %q", got, err, tt.want)
			}
		})
	}
}
