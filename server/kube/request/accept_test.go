package request

import "testing"

func TestNegotiate(t *testing.T) {
	for accept, want := range map[string]string{
		"":                              "",
		"*/*":                           "",
		"application/*":                 "",
		"application/json":              "",
		"application/json;stream=watch": "",
		"application/vnd.kubernetes.protobuf,application/json":                     "",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json":            "Table",
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json":       "",
		"application/json;as=Table;g=meta.k8s.io;v=v1;q=0.1,application/json;q=.5": "",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1":             "406",
		"application/vnd.kubernetes.protobuf":                                      "406",
		"text/html":                                                                "406",
		"application/json;q=0":                                                     "406",
		";;;,":                                                                     "406",
	} {
		got, err := negotiate(accept, AsTable)
		if err != nil {
			got = "406"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", accept, got, want)
		}
	}
}
