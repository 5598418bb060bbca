package logs

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeBigLog writes about 100 MB of container output in entries of the given length.
// Entries of 16 KiB or more are parts of longer lines, as runtimes split them.
func writeBigLog(b *testing.B, length int) (dir string, size int64) {
	b.Helper()
	dir = logDir(b, nil)
	f, err := os.Create(filepath.Join(dir, "c", "0.log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	text := strings.Repeat("z", length)
	for i := 0; size < 100<<20; i++ {
		stream := Stdout
		if i%2 == 1 {
			stream = Stderr
		}
		w.WriteString(logLine(stream, length >= 16<<10 && i%16 > 1, text))
		size += int64(length)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return dir, size
}

func benchmark(b *testing.B, length int, o Options) {
	dir, size := writeBigLog(b, length)
	o.Dir, o.Container = dir, "c"
	out := bufio.NewWriterSize(io.Discard, 64<<10)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		n := int64(0)
		err := Read(b.Context(), o, func(e Entry) error {
			n += int64(len(e.Text))
			out.Write(e.Text)
			if !e.Partial {
				out.WriteByte('\n')
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		if n < size && o.TailLines == 0 {
			b.Fatalf("got %d bytes, want %d", n, size)
		}
	}
}

func BenchmarkReadShortLines(b *testing.B) { benchmark(b, 60, Options{}) }
func BenchmarkReadLongLines(b *testing.B)  { benchmark(b, 16<<10, Options{}) }
func BenchmarkTail(b *testing.B)           { benchmark(b, 60, Options{TailLines: 1000}) }
func BenchmarkTailAll(b *testing.B)        { benchmark(b, 60, Options{TailLines: 1 << 30}) }
