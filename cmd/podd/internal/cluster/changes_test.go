package cluster

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
)

// A watch is read in either form, whole or by the byte, to its end or to where it is
// cut.
func TestChanges(t *testing.T) {
	codecs := serializer.NewCodecFactory(scheme()).WithoutConversion()
	streams := runtime.NewClientNegotiator(codecs, v1.SchemeGroupVersion)
	for _, form := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), form)
		if !ok {
			t.Fatalf("no serializer of %s", form)
		}
		var said bytes.Buffer
		frames := info.StreamSerializer.Framer.NewFrameWriter(&said)
		var whole int // length of the first
		for i, name := range []string{"a", "b"} {
			object := encoded(t, info.Serializer, config(name, "1"))
			event := encoded(t, info.StreamSerializer.Serializer, &metav1.WatchEvent{Type: string(watch.Added), Object: runtime.RawExtension{Raw: object}})
			if _, err := frames.Write(event); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				whole = said.Len()
			}
		}
		for _, test := range []struct {
			name string
			from io.Reader
			want []string
			left time.Duration // of what was asked for
			end  error
		}{
			{"whole", bytes.NewReader(said.Bytes()), []string{"a", "b"}, 0, io.EOF},
			{"by the byte", iotest.OneByteReader(bytes.NewReader(said.Bytes())), []string{"a", "b"}, 0, io.EOF},
			{"nothing", bytes.NewReader(nil), nil, 0, io.EOF},
			{"nothing, too early", bytes.NewReader(nil), nil, time.Hour, errWatchInterrupted},
			{"cut between", bytes.NewReader(said.Bytes()[:whole]), []string{"a"}, time.Hour, errWatchInterrupted},
			{"cut within", bytes.NewReader(said.Bytes()[:whole+9]), []string{"a"}, 0, errWatchInterrupted},
			{"cut off", io.MultiReader(bytes.NewReader(said.Bytes()[:whole]), iotest.ErrReader(io.ErrUnexpectedEOF)), []string{"a"}, 0, errWatchInterrupted},
			{"reset", io.MultiReader(bytes.NewReader(said.Bytes()[:whole]), iotest.ErrReader(syscall.ECONNRESET)), []string{"a"}, 0, errWatchInterrupted},
		} {
			c := &watchStream{from: io.NopCloser(test.from), streams: streams, until: time.Now().Add(test.left)}
			for _, want := range test.want {
				kind, o, err := c.next()
				if m, ok := o.(*v1.ConfigMap); err != nil || kind != watch.Added || !ok || m.Name != want || m.Data["a"] != "1" {
					t.Fatalf("%s, %s: got %s %v, %v, want %s", form, test.name, kind, o, err, want)
				}
			}
			if _, _, err := c.next(); err != test.end {
				t.Errorf("%s, %s: it ends with %v, want %v", form, test.name, err, test.end)
			}
		}
		broken := &watchStream{from: io.NopCloser(bytes.NewReader(bytes.Replace(said.Bytes(), []byte("ADDED"), []byte("AD\x00ED"), 1))), streams: streams}
		if _, _, err := broken.next(); err == nil || errors.Is(err, io.EOF) || err == errWatchInterrupted {
			t.Errorf("%s: what is no event gives %v", form, err)
		}
	}
}

func encoded(t *testing.T, s runtime.Serializer, o runtime.Object) []byte {
	t.Helper()
	var text bytes.Buffer
	if c, ok := o.(*v1.ConfigMap); ok {
		c.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	}
	if err := s.Encode(o, &text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}
