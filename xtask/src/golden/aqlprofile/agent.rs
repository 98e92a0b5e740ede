//! The agent of a case.

use anyhow::Result;
use serde_json::Value;
use wavescope_aql_profile::AgentShape;
use wavescope_pm4::IpBases;

use super::value::{list, small, text};

/// The agent that `agent` describes; `discovery` holds its segment bases where they are not in it.
pub(super) fn shape(agent: &Value, discovery: Option<&Value>) -> Result<AgentShape> {
    let number = |key: &str| small(&agent[key]);
    let gfxip = text(&agent["gfxip"])?;
    let mut shape =
        AgentShape::new(gfxip, number("xcc")?, number("se")?, number("cu")?, number("sa_per_se")?);
    if let Some(bases) = agent.get("ip_discovery").or(discovery) {
        let segments = |key: &str| list(&bases[key])?.iter().map(small).collect::<Result<Vec<_>>>();
        shape.bases = Some(IpBases::new(&segments("GC")?, &segments("ATHUB")?));
    }
    Ok(shape)
}
