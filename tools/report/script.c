/*
 * The page's style and script, as lines. Neither contains anything of the log.
 *
 * The script sorts and filters the tables. What it shows is in the fragment of the page's address,
 * such as #sort.functions=-exits&filter.caches=mega, so that a view can be kept and sent. Without
 * scripts, the tables are complete, in the order of the report.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/report/report.h"

static const char *const style[] = {
    ":root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--faint:#5c6570;--line:#d5dae0;",
    "--head:#f1f4f7;--accent:#0b57a4;--code:#3f7cc4;--compile:#b3661b;--version:#2f7d4f;",
    "--plain:#8a949e;--deopt:#b3261e;--cache:#7a4fb5;--warn:#fff3d6}",
    "@media (prefers-color-scheme:dark){:root{--back:#14171a;--text:#e4e7ea;--faint:#a3adb8;",
    "--line:#383f47;--head:#20252a;--accent:#7db8f5;--code:#5b97dd;--compile:#d98d45;",
    "--version:#58b07c;--plain:#89939d;--deopt:#f0837b;--cache:#b394e6;--warn:#3d3314}}",
    "*{box-sizing:border-box}",
    "body{margin:0 auto;max-width:90rem;padding:1rem 1.5rem 4rem;background:var(--back);",
    "color:var(--text);font:15px/1.5 system-ui,sans-serif}",
    "h1{font-size:1.5rem;margin:.5rem 0 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}",
    "p{margin:.25rem 0}.faint{color:var(--faint)}a{color:var(--accent)}",
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;padding:0;",
    "margin:1rem 0}",
    "#missing{background:var(--warn);padding:.5rem 1rem;border-radius:.4rem;margin:1rem 0}",
    "#missing h2{margin:0;font-size:1rem}#missing ul{margin:.25rem 0;padding-left:1.25rem}",
    "#summary dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:.5rem;",
    "margin:0}#summary div{border:1px solid var(--line);border-radius:.4rem;padding:.4rem .7rem}",
    "dt{color:var(--faint);font-size:.85rem}",
    "dd{margin:0;font-weight:600;overflow-wrap:anywhere}",
    ".scroll{overflow-x:auto}.scroll:focus-visible{outline:2px solid var(--accent)}",
    "table{border-collapse:collapse;width:100%;font-size:.9rem}",
    "caption{text-align:left;color:var(--faint);padding:.25rem 0}",
    "th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;",
    "vertical-align:top;overflow-wrap:anywhere;min-width:4rem}",
    "thead th{background:var(--head);vertical-align:bottom;font-weight:600;overflow-wrap:normal}",
    "tbody th{font-weight:600;min-width:8rem}",
    ".number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}",
    "thead button{all:unset;cursor:pointer;font-weight:600}",
    "thead button:focus-visible{outline:2px solid var(--accent)}",
    "th[aria-sort=ascending] button::after{content:' \\25b2'}",
    "th[aria-sort=descending] button::after{content:' \\25bc'}",
    "label{display:inline-block;margin:.25rem 0;font-size:.9rem}",
    "input{font:inherit;color:inherit;background:var(--back);border:1px solid var(--faint);",
    "border-radius:.3rem;padding:.15rem .4rem;margin-left:.4rem}",
    "svg{width:100%;height:auto;max-height:34rem}svg text{fill:var(--text);font-size:11px}",
    "svg .faint{fill:var(--faint)}svg .line{stroke:var(--line)}svg .code{fill:var(--code)}",
    "svg .compile{fill:var(--compile)}svg .version{fill:var(--version)}",
    "svg .plain{fill:var(--plain)}svg .deopt{fill:var(--deopt)}svg .cache{fill:var(--cache)}",
    "svg .hit{fill:var(--text)}svg .compile:hover{opacity:.7}",
    "@media print{body{max-width:none;padding:0;font-size:10pt}nav,label,.shown{display:none}",
    ".scroll{overflow:visible}thead{display:table-header-group}tr{break-inside:avoid}}",
};

static const char *const script[] = {
    "'use strict';",
    "(() => {",
    "const make = (name, properties) => Object.assign(document.createElement(name), properties);",
    "const wanted = () => new URLSearchParams(location.hash.slice(1));",
    "const keep = (key, value) => {",
    "  const state = new URLSearchParams();",
    "  for (const [name, old] of wanted())",
    "    if (/^(sort|filter)\\b/.test(name)) state.set(name, old);",
    "  if (value) state.set(key, value); else state.delete(key);",
    "  history.replaceState(null, '', '#' + state);",
    "  apply();",
    "};",
    "const tables = [...document.querySelectorAll('table[data-table]')].map(element => {",
    "  const name = element.dataset.table;",
    "  const body = element.tBodies[0];",
    "  const table = {name, body, rows: [...body.rows], heads: [...element.tHead.rows[0].cells]};",
    "  table.texts = table.rows.map(row => row.textContent.toLowerCase());",
    "  table.shown = make('span', {className: 'shown'});",
    "  table.shown.setAttribute('role', 'status');",
    "  element.caption.append(table.shown);",
    "  for (const head of table.heads) {",
    "    const key = head.dataset.key;",
    "    const button = make('button', {type: 'button', textContent: head.textContent});",
    "    button.addEventListener('click', () => {",
    "      const now = wanted().get('sort.' + name);",
    "      const first = head.className === 'number' ? '-' + key : key;",
    "      const other = first === key ? '-' + key : key;",
    "      keep('sort.' + name, now === first ? other : first);",
    "    });",
    "    head.replaceChildren(button);",
    "  }",
    "  const label = make('label', {textContent: 'Filter ' + element.dataset.title});",
    "  table.input = make('input', {type: 'search'});",
    "  table.input.addEventListener('input', () => keep('filter.' + name, table.input.value));",
    "  label.append(table.input);",
    "  element.parentElement.before(label);",
    "  return table;",
    "});",
    "const all = make('label', {textContent: 'Filter all tables'});",
    "const allInput = make('input', {type: 'search'});",
    "allInput.addEventListener('input', () => keep('filter', allInput.value));",
    "all.append(allInput);",
    "document.querySelector('nav').append(all);",
    "const order = (table, sort) => {",
    "  const isDescending = sort.startsWith('-');",
    "  const column = table.heads.findIndex(head => head.dataset.key === sort.replace(/^-/, ''));",
    "  table.heads.forEach((head, i) => {",
    "    if (i !== column) head.removeAttribute('aria-sort');",
    "    else head.setAttribute('aria-sort', isDescending ? 'descending' : 'ascending');",
    "  });",
    "  if (column < 0) return table.rows;",
    "  const keyed = table.rows.map(row => {",
    "    const cell = row.cells[column];",
    "    const number = cell.dataset.value;",
    "    return {row, value: number === undefined ? cell.textContent : Number(number)};",
    "  });",
    "  const compare = (a, b) => {",
    "    if (a.value === '' || b.value === '') return (a.value === '') - (b.value === '');",
    "    const order = typeof a.value === 'number' && typeof b.value === 'number'",
    "      ? a.value - b.value : String(a.value).localeCompare(String(b.value));",
    "    return isDescending ? -order : order;",
    "  };",
    "  return keyed.sort(compare).map(item => item.row);",
    "};",
    "const words = text => (text || '').toLowerCase().split(/\\s+/).filter(word => word);",
    "const apply = () => {",
    "  const state = wanted();",
    "  const common = state.get('filter') || '';",
    "  if (allInput.value !== common) allInput.value = common;",
    "  for (const table of tables) {",
    "    const own = state.get('filter.' + table.name) || '';",
    "    if (table.input.value !== own) table.input.value = own;",
    "    const terms = [...words(common), ...words(own)];",
    "    let count = 0;",
    "    table.rows.forEach((row, i) => {",
    "      row.hidden = !terms.every(term => table.texts[i].includes(term));",
    "      count += !row.hidden;",
    "    });",
    "    table.body.append(...order(table, state.get('sort.' + table.name) || ''));",
    "    table.shown.textContent = terms.length",
    "      ? ` \\u00b7 ${count} of ${table.rows.length} rows match` : '';",
    "  }",
    "};",
    "addEventListener('hashchange', apply);",
    "apply();",
    "})();",
};

static void write_lines(struct output *output, const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        output_text(output, lines[i]);
        output_character(output, '\n');
    }
}

void write_report_style(struct output *output)
{
    write_lines(output, style, sizeof style / sizeof *style);
}

void write_report_script(struct output *output)
{
    write_lines(output, script, sizeof script / sizeof *script);
}
