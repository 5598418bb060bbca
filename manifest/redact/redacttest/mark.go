// Package redacttest fills pods with markers, for tests of code that shows pods.
package redacttest

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Private maps each private text field below a v1.Pod, as "Type.Field", to the reason why it is
// private. Private is written by hand and does not depend on package redact. The tests of package
// redact compare Private with the table of public fields. A field that a later version of the API
// adds is in neither table. The test fails until the field is added to one of the tables.
var Private = map[string]string{
	"AzureDiskVolumeSource.DataDiskURI":                "its query can contain a token",
	"CSIVolumeSource.VolumeAttributes":                 "parameters of a driver can be secret",
	"ContainerStateTerminated.Message":                 "can be the end of a log",
	"ContainerStateWaiting.Message":                    "can quote a hook or a runtime",
	"EnvVar.Value":                                     "can be a password",
	"FieldsV1.Raw":                                     "contains the keys of private maps",
	"FlexVolumeSource.Options":                         "parameters of a driver can be secret",
	"GitRepoVolumeSource.Repository":                   "a URL can contain a password",
	"HTTPGetAction.Path":                               "its query can contain a token",
	"HTTPHeader.Value":                                 "headers can contain credentials",
	"ManagedFieldsEntry.APIVersion":                    "has no use without the fields",
	"ManagedFieldsEntry.FieldsType":                    "has no use without the fields",
	"ManagedFieldsEntry.Manager":                       "has no use without the fields",
	"ManagedFieldsEntry.Operation":                     "has no use without the fields",
	"ManagedFieldsEntry.Subresource":                   "has no use without the fields",
	"ObjectMeta.Annotations":                           "kubectl stores whole manifests there",
	"PodCertificateProjection.UserAnnotations":         "are for the signer only",
	"PodCondition.Message":                             "can quote a runtime",
	"PodStatus.Message":                                "can quote a runtime",
	"ResourceHealth.Message":                           "can quote a device plugin",
	"VolumeHealthCondition.Message":                    "can quote a driver",
	"WindowsSecurityContextOptions.GMSACredentialSpec": "is a credential",
}

// Marks contains the markers of a pod. Private and Public map each marker to the path of its field.
type Marks struct {
	// Private contains the markers that must not be shown to other users.
	Private map[string]string
	// Public contains the markers that may be shown.
	Public map[string]string
	// Fields contains all text fields, as "Type.Field".
	Fields map[string]bool

	privateFields map[string]bool // as "Type.Field"
	newMarker     func(n int) string
	n             int
}

// Fill writes a unique marker to every text field of the struct *v and of the structs below it.
// Every list and map gets one element. Markers consist of letters and digits. The path of an
// httpGet gets a public marker, and a private one in its query. The fields in morePrivate are
// private in addition to those in Private.
func Fill(v any, morePrivate ...string) *Marks {
	return fillWith(v, func(n int) string { return fmt.Sprintf("marker%05dx", n) }, morePrivate)
}

// FillShort is like Fill, but each marker consists of five lowercase letters, like a short
// password.
func FillShort(v any, morePrivate ...string) *Marks {
	return fillWith(v, func(n int) string {
		marker := []byte("zaaaa")
		for i := len(marker) - 1; n > 0; i-- {
			marker[i] = byte('a' + n%26)
			n /= 26
		}
		return string(marker)
	}, morePrivate)
}

func fillWith(v any, marker func(n int) string, morePrivate []string) *Marks {
	m := &Marks{Private: map[string]string{}, Public: map[string]string{}, Fields: map[string]bool{}, privateFields: map[string]bool{}, newMarker: marker}
	for name := range Private {
		m.privateFields[name] = true
	}
	for _, name := range morePrivate {
		m.privateFields[name] = true
	}
	e := reflect.ValueOf(v).Elem()
	m.fill(e, e.Type().Name(), "")
	return m
}

// FindMarks returns the fields with markers in text.
func FindMarks(marks map[string]string, text string) (fields []string) {
	for marker, field := range marks {
		if strings.Contains(text, marker) {
			fields = append(fields, field)
		}
	}
	return fields
}

// mark returns a new marker for the field at path. name is the "Type.Field" of the field.
func (m *Marks) mark(path, name string) string {
	m.n++
	marker := m.newMarker(m.n)
	if m.Fields[name] = true; m.privateFields[name] {
		m.Private[marker] = path
	} else {
		m.Public[marker] = path
	}
	return marker
}

func (m *Marks) fill(v reflect.Value, path, name string) {
	switch v.Kind() {
	case reflect.String:
		text := m.mark(path, name)
		if name == "HTTPGetAction.Path" {
			delete(m.Private, text)
			m.Public[text] = path
			text = "/" + text + "?token=" + m.mark(path+"?", name)
		}
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		m.fill(v.Elem(), path, name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`"` + m.mark(path, name) + `"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		m.fill(v.Index(0), path+"[0]", name)
	case reflect.Map:
		m.fillMap(v, path, name)
	case reflect.Struct:
		switch a := v.Addr().Interface().(type) {
		case *resource.Quantity: // no marker: in JSON a Quantity is one string, which does not contain Format
			m.Fields["Quantity.Format"] = true
			return
		case *intstr.IntOrString:
			a.Type = intstr.String
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				m.fill(v.Field(i), path+"."+f.Name, v.Type().Name()+"."+f.Name)
			}
		}
	}
}

// fillMap fills a map. The keys of a private map get no marker, because keys are names.
func (m *Marks) fillMap(v reflect.Value, path, name string) {
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	if m.privateFields[name] {
		key.SetString("key")
		m.Fields[name] = true
	} else {
		m.fill(key, path+" key", name)
	}
	m.fill(value, path, name)
	v.Set(reflect.MakeMap(v.Type()))
	v.SetMapIndex(key, value)
}
