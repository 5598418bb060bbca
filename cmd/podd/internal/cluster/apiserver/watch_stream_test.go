package apiserver

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

// TestWatchStream checks that a WatchStream reads events in JSON and in protobuf. At the end of the
// stream, the error must distinguish the requested end of the watch from an interruption.
func TestWatchStream(t *testing.T) {
	codecs := serializer.NewCodecFactory(newScheme()).WithoutConversion()
	streams := runtime.NewClientNegotiator(codecs, v1.SchemeGroupVersion)
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), contentType)
		if !ok {
			t.Fatalf("got no serializer for %s, want one", contentType)
		}
		var stream bytes.Buffer
		frames := info.StreamSerializer.Framer.NewFrameWriter(&stream)
		var firstEnd int // offset of the end of the first event
		for i, name := range []string{"a", "b"} {
			object := encode(t, info.Serializer, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"a": "1"}})
			event := encode(t, info.StreamSerializer.Serializer, &metav1.WatchEvent{Type: string(watch.Added), Object: runtime.RawExtension{Raw: object}})
			if _, err := frames.Write(event); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				firstEnd = stream.Len()
			}
		}
		for _, test := range []struct {
			name string
			from io.Reader
			want []string
			left time.Duration // time until the requested end of the watch
			end  error         // error after the last event
		}{
			{"complete", bytes.NewReader(stream.Bytes()), []string{"a", "b"}, 0, io.EOF},
			{"single bytes", iotest.OneByteReader(bytes.NewReader(stream.Bytes())), []string{"a", "b"}, 0, io.EOF},
			{"empty", bytes.NewReader(nil), nil, 0, io.EOF},
			{"empty, too early", bytes.NewReader(nil), nil, time.Hour, errWatchInterrupted},
			{"interrupted between events", bytes.NewReader(stream.Bytes()[:firstEnd]), []string{"a"}, time.Hour, errWatchInterrupted},
			{"interrupted within an event", bytes.NewReader(stream.Bytes()[:firstEnd+9]), []string{"a"}, 0, errWatchInterrupted},
			{"unexpected EOF", io.MultiReader(bytes.NewReader(stream.Bytes()[:firstEnd]), iotest.ErrReader(io.ErrUnexpectedEOF)), []string{"a"}, 0, errWatchInterrupted},
			{"connection reset", io.MultiReader(bytes.NewReader(stream.Bytes()[:firstEnd]), iotest.ErrReader(syscall.ECONNRESET)), []string{"a"}, 0, errWatchInterrupted},
		} {
			c := &WatchStream{body: io.NopCloser(test.from), negotiator: streams, requestedEnd: time.Now().Add(test.left)}
			for _, want := range test.want {
				kind, o, err := c.Next()
				if m, ok := o.(*v1.ConfigMap); err != nil || kind != watch.Added || !ok || m.Name != want || m.Data["a"] != "1" {
					t.Fatalf("%s, %s: got event %s of %v, error %v; want event ADDED of the ConfigMap %q", contentType, test.name, kind, o, err, want)
				}
			}
			if _, _, err := c.Next(); err != test.end {
				t.Errorf("%s, %s: got error %v after the last event, want %v", contentType, test.name, err, test.end)
			}
		}
		broken := &WatchStream{body: io.NopCloser(bytes.NewReader(bytes.Replace(stream.Bytes(), []byte("ADDED"), []byte("AD\x00ED"), 1))), negotiator: streams}
		if _, _, err := broken.Next(); err == nil || errors.Is(err, io.EOF) || err == errWatchInterrupted {
			t.Errorf("%s, invalid event: got error %v; want a decoding error", contentType, err)
		}
	}
}

// encode returns the form of an object in the format of s.
func encode(t *testing.T, s runtime.Serializer, o runtime.Object) []byte {
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
