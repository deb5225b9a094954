//! The page of a replay: token chart, canvases, turns. One file, no scripts, no network.

use super::{Canvas, Report};
use serde_json::Value;

const WIDTH: f64 = 960.0;
const CHART_HEIGHT: f64 = 240.0;
const NODE_WIDTH: f64 = 300.0;
const NODE_HEIGHT: f64 = 86.0;
const NODE_GAP: f64 = 20.0;
/// Nodes of one column before the drawing goes on in the next.
const COLUMN_NODES: usize = 6;
/// Characters of a line inside a node.
const NODE_LINE_CHARS: usize = 46;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2rem auto;padding:0 1rem;color:#1c2430}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.15rem .8rem;text-align:right;border-bottom:1px solid #dde3ea}th:first-child,td:first-child{text-align:left}\
.big{font-size:1.6rem;font-weight:600}.faint{color:#66758a}pre{background:#f5f7fa;padding:.8rem;overflow:auto;font-size:12px}svg{max-width:100%;height:auto}svg text{font-family:system-ui,sans-serif}";

/// Returns the page.
pub(crate) fn page(title: &str, report: &Report) -> String {
    let (before, after) = (report.before(), report.after());
    let saved = if before == 0 { 0.0 } else { 100.0 * (1.0 - after as f64 / before as f64) };
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>\
         <p><span class=\"big\">{saved:.1} % fewer tokens</span> <span class=\"faint\">{} → {} over {} turns, window {}</span></p>\
         <p>{} results offloaded, {:.1} % of their bytes recovered exactly; {:.0} % of the previous turn's bytes kept (median).</p>",
        grouped(before),
        grouped(after),
        report.turns.len(),
        grouped(u64::from(report.window)),
        report.offloaded.len(),
        report.recovered() * 100.0,
        report.prefix_median() * 100.0,
        title = escape(title),
    );
    page.push_str("<h2>Tokens that the model reads, a turn</h2>");
    page.push_str(&chart(report));
    for (at, canvas) in report.canvases.iter().enumerate() {
        page.push_str(&format!("<h2>Task {:03}: {}</h2>", at + 1, escape(&canvas.goal)));
        page.push_str(&drawing(canvas));
        page.push_str(&format!("<details><summary>Mermaid</summary><pre>{}</pre></details>", escape(&canvas.mermaid)));
    }
    page.push_str("<h2>Turns</h2><details><summary>Every turn</summary><table><tr><th>turn</th><th>messages</th><th>before</th><th>after</th><th>mode</th><th>kept prefix</th></tr>");
    for (at, turn) in report.turns.iter().enumerate() {
        page.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0} %</td></tr>",
            at + 1,
            turn.messages,
            grouped(turn.before),
            grouped(turn.after),
            escape(&turn.mode),
            turn.prefix * 100.0
        ));
    }
    page.push_str("</table></details></html>\n");
    page
}

/// The two token counts over the turns.
fn chart(report: &Report) -> String {
    let most = report.turns.iter().map(|turn| turn.before.max(turn.after)).max().unwrap_or(1).max(1) as f64;
    let count = report.turns.len().max(2) as f64 - 1.0;
    let line = |pick: &dyn Fn(usize) -> u64| -> String {
        (0..report.turns.len())
            .map(|at| format!("{:.1},{:.1}", 60.0 + at as f64 / count * (WIDTH - 80.0), CHART_HEIGHT - pick(at) as f64 / most * (CHART_HEIGHT - 20.0)))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let before = line(&|at| report.turns[at].before);
    let after = line(&|at| report.turns[at].after);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"tokens a turn\"><line x1=\"60\" y1=\"{CHART_HEIGHT}\" x2=\"{end}\" y2=\"{CHART_HEIGHT}\" stroke=\"#9aa7b8\"/>\
         <text x=\"54\" y=\"24\" font-size=\"12\" text-anchor=\"end\" fill=\"#66758a\">{top}</text><text x=\"54\" y=\"{CHART_HEIGHT}\" font-size=\"12\" text-anchor=\"end\" fill=\"#66758a\">0</text>\
         <polyline points=\"{before}\" fill=\"none\" stroke=\"#b0bac7\" stroke-width=\"2\"/><polyline points=\"{after}\" fill=\"none\" stroke=\"#1f6feb\" stroke-width=\"2.5\"/>\
         <text x=\"70\" y=\"{legend}\" font-size=\"13\" fill=\"#8793a3\">before</text><text x=\"130\" y=\"{legend}\" font-size=\"13\" fill=\"#1f6feb\">after</text></svg>",
        height = CHART_HEIGHT + 30.0,
        end = WIDTH - 20.0,
        top = grouped(most as u64),
        legend = CHART_HEIGHT + 20.0,
    )
}

/// A canvas as nodes in columns, in the order of the work.
fn drawing(canvas: &Canvas) -> String {
    let columns = canvas.nodes.len().div_ceil(COLUMN_NODES).max(1);
    let rows = canvas.nodes.len().min(COLUMN_NODES);
    let width = columns as f64 * (NODE_WIDTH + NODE_GAP);
    let height = rows as f64 * (NODE_HEIGHT + NODE_GAP) + NODE_GAP;
    let place = |at: usize| ((at / COLUMN_NODES) as f64 * (NODE_WIDTH + NODE_GAP), NODE_GAP / 2.0 + (at % COLUMN_NODES) as f64 * (NODE_HEIGHT + NODE_GAP));
    let mut svg = format!("<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"canvas\">");
    for (at, node) in canvas.nodes.iter().enumerate() {
        let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
        let (x, y) = place(at);
        let (fill, stroke) = match text("status") {
            "done" => ("#e9f7ee", "#2f9e58"),
            "doing" => ("#e7f0fd", "#1f6feb"),
            "blocked" => ("#fdeceb", "#d1453b"),
            _ => ("#f3f4f6", "#8793a3"),
        };
        if at > 0 && at % COLUMN_NODES > 0 {
            svg.push_str(&format!("<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#9aa7b8\"/>", x + NODE_WIDTH / 2.0, y - NODE_GAP, y));
        } else if at > 0 {
            let (from_x, from_y) = place(at - 1);
            svg.push_str(&format!(
                "<path d=\"M{} {} H{} V{} H{}\" fill=\"none\" stroke=\"#9aa7b8\"/>",
                from_x + NODE_WIDTH,
                from_y + NODE_HEIGHT / 2.0,
                from_x + NODE_WIDTH + NODE_GAP / 2.0,
                y + NODE_HEIGHT / 2.0,
                x
            ));
        }
        svg.push_str(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"8\" fill=\"{fill}\" stroke=\"{stroke}\"/>"));
        let heading = format!("{} · {}", text("id"), text("status"));
        let lines = [(heading, 600), (text("label").to_owned(), 400)].into_iter().chain(wrapped(text("summary")).into_iter().map(|line| (line, 400)));
        for (row, (line, weight)) in lines.take(4).enumerate() {
            let cut: String = line.chars().take(NODE_LINE_CHARS).collect();
            svg.push_str(&format!(
                "<text x=\"{}\" y=\"{}\" font-size=\"12\" font-weight=\"{weight}\" fill=\"#1c2430\">{}</text>",
                x + 10.0,
                y + 20.0 + row as f64 * 18.0,
                escape(&cut)
            ));
        }
        svg.push_str(&format!("<title>{}</title>", escape(text("summary"))));
    }
    svg.push_str("</svg>");
    svg
}

fn wrapped(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(NODE_LINE_CHARS).map(|line| line.iter().collect()).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a number with its thousands set apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
