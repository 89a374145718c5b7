package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nginxPort can be any port, because the namespace is our own.
const nginxPort = 8080

// nginxConfig keeps nginx inside one folder. It serves what a fresh installation would,
// without the log, whose cost would be measured too.
const nginxConfig = `daemon off;
master_process on;
worker_processes auto;
worker_rlimit_nofile 8192;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 4096; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 100000;
	default_type application/octet-stream;
	client_body_temp_path temp/body;
	proxy_temp_path temp/proxy;
	fastcgi_temp_path temp/fastcgi;
	uwsgi_temp_path temp/uwsgi;
	scgi_temp_path temp/scgi;
	server {
		listen %s reuseport backlog=4096;
		root objects;
	}
}
`

// Nginx is a real nginx with its own configuration and folder.
type Nginx struct {
	dir      string
	address  netip.AddrPort
	process  *os.Process
	ended    chan error
	messages bytes.Buffer // readable once nginx has ended
}

// NginxMissing returns why nginx cannot be started, or "" if it can.
func NginxMissing() string {
	if _, err := nginxProgram(); err != nil {
		return "nginx is not installed: the package nginx has it"
	}
	return ""
}

// nginxProgram finds nginx where distributions install it. That folder is not in every
// PATH.
func nginxProgram() (string, error) {
	if path, err := exec.LookPath("nginx"); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/nginx")
}

// NginxVersion returns the version that nginx prints.
func NginxVersion() string {
	program, err := nginxProgram()
	if err != nil {
		return ""
	}
	out, err := exec.Command(program, "-v").CombinedOutput()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "nginx version: ")
}

// StartNginx serves objects of the given sizes in bytes. It makes their folder in dir.
func StartNginx(ctx context.Context, h Host, addr netip.Addr, dir string, sizes []int) (*Nginx, error) {
	program, err := nginxProgram()
	if err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	n := &Nginx{dir: filepath.Join(dir, "nginx"), address: netip.AddrPortFrom(addr, nginxPort), ended: make(chan error, 1)}
	if err := n.write(sizes); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.dir))
	}
	cmd := exec.Command(program, "-p", n.dir, "-c", "nginx.conf", "-e", "error.log")
	cmd.Stdout, cmd.Stderr = &n.messages, &n.messages
	if err := n.start(h, cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start nginx: %w", err), os.RemoveAll(n.dir))
	}
	if err := awaitPort(ctx, h, nginxPort); err != nil {
		err = errors.Join(err, n.Close())
		return nil, fmt.Errorf("start nginx: %w: %s", err, strings.TrimSpace(n.messages.String()))
	}
	return n, nil
}

// start keeps nginx's parent thread until nginx has ended. So nginx ends with this
// program, however that ends.
func (n *Nginx) start(h Host, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		n.ended <- h.do(func() error {
			err := cmd.Start()
			started <- err
			if err != nil {
				return err
			}
			return cmd.Wait()
		})
	}()
	select {
	case err := <-started:
		n.process = cmd.Process
		return err
	case err := <-n.ended: // the namespace does not exist
		return err
	}
}

func (n *Nginx) write(sizes []int) error {
	for _, dir := range []string{"objects", "temp"} {
		if err := os.MkdirAll(filepath.Join(n.dir, dir), 0o755); err != nil {
			return fmt.Errorf("make a folder for nginx: %w", err)
		}
	}
	// nginx's workers run as another user, and the benchmark's folder is root's only.
	if err := os.Chmod(filepath.Dir(n.dir), 0o711); err != nil {
		return fmt.Errorf("let nginx into its folder: %w", err)
	}
	files := map[string][]byte{"nginx.conf": fmt.Appendf(nil, nginxConfig, n.address)}
	for _, size := range sizes {
		object := bytes.Repeat(content, size/len(content)+1)[:size]
		files[filepath.Join("objects", strconv.Itoa(size))] = object
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(n.dir, name), b, 0o644); err != nil {
			return fmt.Errorf("write what nginx serves: %w", err)
		}
	}
	return nil
}

// Address returns the address on which nginx listens.
func (n *Nginx) Address() netip.AddrPort { return n.address }

// Close ends nginx, by force if needed, and removes its folder.
func (n *Nginx) Close() error {
	err := n.process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	select {
	case <-n.ended:
	case <-time.After(5 * time.Second):
		err = errors.Join(err, errors.New("nginx did not end within 5 s and was killed"), n.process.Kill())
		<-n.ended
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
