package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/bench/report"
)

// reportFlags says where to write a benchmark's report. All subcommands of `weir bench`
// have these flags.
type reportFlags struct {
	json, html, markdown, svg string
}

func (r *reportFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.json, "json", "", "also write the report to this `file` as JSON, for programs and \"weir bench compare\"; - is standard output")
	f.StringVar(&r.html, "html", "", "also write the report to this `file` as one self-contained HTML page with charts")
	f.StringVar(&r.markdown, "markdown", "", "also write the report to this `file` as Markdown; with --svg it shows the charts")
	f.StringVar(&r.svg, "svg", "", "also write each chart to a file of its own in this `folder`")
}

// targets returns the file names, in the order of writing.
func (r *reportFlags) targets() []*string { return []*string{&r.json, &r.html, &r.markdown} }

// check reports before a long run which files could not be written after it.
func (r *reportFlags) check() error {
	onStdout := 0
	for _, file := range r.targets() {
		if *file == "-" {
			onStdout++
			continue
		}
		if *file == "" {
			continue
		}
		dir := filepath.Dir(*file)
		if err := unix.Access(dir, unix.W_OK); err != nil {
			return &UsageError{fmt.Errorf("the report could not be written to %s: folder %s: %w", *file, dir, err)}
		}
		if there, err := os.Stat(*file); err == nil && there.IsDir() {
			return &UsageError{fmt.Errorf("the report could not be written to %s: it is a folder", *file)}
		}
	}
	if onStdout > 1 {
		return &UsageError{errors.New("only one of --json, --html and --markdown can be -, standard output")}
	}
	if r.svg == "-" {
		return &UsageError{errors.New("--svg: want a folder, as each chart becomes a file")}
	}
	if r.svg != "" {
		if err := os.MkdirAll(r.svg, 0o777); err != nil {
			return &UsageError{fmt.Errorf("--svg: %w", err)}
		}
	}
	return nil
}

// ownForms holds a benchmark's own report forms, from before all had the same form. nil
// means the common form.
type ownForms struct {
	text, json func(io.Writer) error
}

// write writes the report to each target. It also prints it as text, unless something
// else goes to standard output. A file that fails does not stop the others. If the
// control failed, the exit status says so too.
func (r *reportFlags) write(env *Env, d *report.Document, own ownForms) error {
	text, asJSON := own.text, own.json
	var errs []error
	if text == nil {
		text = func(w io.Writer) error { return d.WriteText(w, columns(env.Stdout)) }
	}
	if asJSON == nil {
		asJSON = d.WriteJSON
	}
	for _, form := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{r.json, asJSON}, {r.html, d.WriteHTML}, {r.markdown, func(w io.Writer) error { return d.WriteMarkdown(w, r.images()) }},
	} {
		if form.file == "-" {
			text = form.write
		} else if form.file != "" {
			errs = append(errs, writeFile(form.file, form.write))
		}
	}
	if r.svg != "" {
		_, err := d.WriteSVGs(r.svg)
		errs = append(errs, err)
	}
	if err := text(env.Stdout); err != nil {
		errs = append(errs, fmt.Errorf("print the report: %w", err))
	}
	if err := errors.Join(errs...); err != nil || d.Conclusive() {
		return err
	}
	return ErrSilent
}

// images returns the folder of the charts, relative to the Markdown file.
func (r *reportFlags) images() string {
	if r.svg == "" || r.markdown == "-" {
		return r.svg
	}
	if relative, err := filepath.Rel(filepath.Dir(r.markdown), r.svg); err == nil {
		return filepath.ToSlash(relative)
	}
	return r.svg
}

// columns returns the width of the terminal, or 100 if there is none.
func columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
	}
	return 100
}

func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	defer func() {
		if closing := f.Close(); err == nil && closing != nil {
			err = fmt.Errorf("write the report: %w", closing)
		}
	}()
	return write(f)
}
