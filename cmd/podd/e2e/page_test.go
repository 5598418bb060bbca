//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"podd/runtime/runtimetest/stack/tools"
)

// A browser is a Chromium that shows one page.
type browser struct {
	t   testing.TB
	ctx context.Context
}

// browse opens a page in a new Chromium with additional command-line options.
func browse(t testing.TB, url string, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	program, err := tools.EnsureBrowser(t.Context(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(patience))
	options = append(options, more...)
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	for starts := 1; ; starts++ {
		ctx, cancel := chromedp.NewContext(allocator)
		t.Cleanup(func() { chromedp.Cancel(ctx); cancel() })
		err := chromedp.Do(ctx, chromedp.Navigate(url))
		if err == nil {
			return &browser{t, ctx}
		}
		// On a busy host, Chromium sometimes crashes while it starts (zygote_linux.cc, segmentation fault).
		if starts == maxBrowserStarts || !strings.Contains(err.Error(), "chrome failed to start") {
			t.Fatalf("opening %s: %v", url, err)
		}
	}
}

// maxBrowserStarts is the number of attempts to start the browser.
const maxBrowserStarts = 3

// until waits until a JavaScript expression in the page is true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("waited %v until %s: %v; the page contains:\n%s", patience, what, err, text)
	}
}

// do runs actions in the browser. The parameter what describes the actions in the message of a
// failure.
func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// script returns an action that runs JavaScript in the page.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text)
}

// screenshot writes a picture to $PODD_E2E_PICTURES, if that is set.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("PODD_E2E_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// overflows reports whether the page is wider than the window.
func (b *browser) overflows() bool {
	b.t.Helper()
	wide, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
	if err != nil {
		b.t.Fatal(err)
	}
	return wide
}

// podRow returns a JavaScript expression for the table row of a pod.
func podRow(pod string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#pods tbody tr")].find(r => r.textContent.includes(%q))`, pod)
}

// forwardSocket forwards a loopback port to podd's socket, as ssh -L does.
func (d *daemon) forwardSocket() (addr string) {
	d.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", filepath.Join(d.runDir(), "podd.sock"))
			if err != nil {
				near.Close()
				continue
			}
			go func() { io.Copy(far, near); far.Close() }()
			go func() { io.Copy(near, far); near.Close() }()
		}
	}()
	return ln.Addr().String()
}

// TestPage checks that a browser shows changes of the node and its pods immediately.
func TestPage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("talker", shell("main", serve("talker"))))
	b := browse(t, "http://"+d.forwardSocket()+"/")
	b.until("the pod is ready", podRow("talker")+`?.className === "ok"`)
	b.until("the page shows the node", fmt.Sprintf(`document.getElementById("node").textContent === %q`, d.host))
	for _, of := range []string{"cpu", "memory"} {
		b.until("the "+of+" usage of the node is drawn", fmt.Sprintf(`document.querySelector("#%s-curve path") && document.getElementById(%q).textContent.includes(" of ")`, of, of))
	}
	b.until("every resource of the page comes from podd", `performance.getEntriesByType("resource").every(r => new URL(r.name).origin === location.origin)`)
	b.screenshot("node")

	d.apply(d.pod("breaker", shell("main", "echo out of luck; exit 3")))
	b.until("the crashed pod is red", podRow("breaker")+`?.className === "bad"`)
	b.until("the row of the crashed pod shows the reason", podRow("breaker")+`.textContent.includes("CrashLoopBackOff")`)
	b.until("the events of the crashed pod are shown", `document.getElementById("events").innerText.includes("BackOff")`)
	d.write("broken", "apiVersion: v1\nkind: Pod\nmetadata: {name: broken}\nspec: {}\n")
	b.until("the broken manifest is shown as a problem", `document.getElementById("problems").innerText.includes("broken.yaml:4")`)
	b.screenshot("problems")

	d.apply(d.pod("counter", shell("main", `n=0; while :; do n=$((n+1)); echo "line $n <b>&amp;"; sleep 0.2; done`)))
	b.until("the pod counter is shown as ready", podRow("counter")+`?.className === "ok"`)
	// Use the keyboard: filter the pods, select the only one that remains, and open it.
	b.do("filtering the pods", chromedp.KeyEvent("/"), chromedp.SendKeys("#filter", "counter"))
	b.until("other pods are hidden", `document.querySelectorAll("#pods tbody tr").length === 1`)
	b.do("opening the pod", script(`document.getElementById("filter").blur()`), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until("the log is shown", `document.getElementById("lines").textContent.includes("line 5 <b>&amp;")`)
	b.until("new lines of the log are shown", `document.getElementById("lines").textContent.includes("line 12 <b>&amp;")`)
	b.until("the events of the pod counter are shown", `document.getElementById("pod-events").innerText.includes("Started")`)
	b.until("the usage of the pod counter is drawn", `!document.getElementById("pod-curves").hidden && document.querySelectorAll("#pod-curves path").length >= 2`)
	b.screenshot("log")
	b.do("closing the dialog", chromedp.KeyEvent(kb.Escape))
	b.until("the dialog is closed", `!document.getElementById("detail").open`)
	b.do("clearing the filter", script(`document.getElementById("filter").value = ""; document.getElementById("filter").dispatchEvent(new Event("input"))`))

	b.do("emulating the screen of a phone", chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	if b.overflows() {
		t.Error("on a screen that is 360 pixels wide: got a page that is wider, want one that fits")
	}
	b.screenshot("phone")
	b.do("emulating a desktop screen", chromedp.EmulateViewport(1280, 900))
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	b.until("the background of the page is dark", `getComputedStyle(document.body).backgroundColor === "rgb(20, 22, 26)"`)
	b.until("the row of the crashed pod is dark red", `getComputedStyle(`+podRow("breaker")+`).backgroundColor === "rgb(58, 29, 28)"`)
	b.screenshot("dark")

	d.remove("counter")
	b.until("the removed pod is not shown", `!(`+podRow("counter")+`)`)
}

// TestPage_ReadOnlyPort checks that the page on the read-only port shows no logs, and that podd rejects
// requests to this port with the name of another host.
func TestPage_ReadOnlyPort(t *testing.T) {
	t.Parallel()
	port := strconv.Itoa(freePort(t))
	d := startDaemon(t, "--read-only-port", port)
	d.apply(d.pod("talker", shell("main", serve("talker"))))
	url := "http://127.0.0.1:" + port + "/"
	b := browse(t, url)
	b.until("the pod is ready", podRow("talker")+`?.className === "ok"`)
	b.do("opening the pod", script(podRow("talker")+`.querySelector("button").click()`))
	b.until("the container of the pod is shown", `document.getElementById("containers").textContent.includes("main")`)
	b.until("the page has no button for a log", `document.querySelectorAll("#containers button").length === 0 && document.getElementById("log").hidden`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "podd.evil.example"
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusMisdirectedRequest || strings.Contains(string(body), "<html") {
		t.Errorf("request with the header Host: %s: got status %d, body %q; want status %d and no page", r.Host, resp.StatusCode, body, http.StatusMisdirectedRequest)
	}
}
